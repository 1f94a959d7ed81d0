"""One version in memory, and its compiled graphs."""

import gc
import json
import shutil
import weakref
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from model.errors import ExportError
from model.network import golden
from serving.server.compute.compiled import ASKED_OFTEN, CompiledVectors
from serving.server.models.loaded import LoadedModel, prove

FACTS = "assets.extra/pause.json"
DATA = "variables/variables.data-00000-of-00001"
TEXTS = [b"bank loans", b"", b"beer ale lager hops malt " * 9, "car 🚗 engine".encode(), b"bank", b"\xff\xfe"]
LENGTH = 16  # tokens: the most that the small model takes


@pytest.fixture(scope="module")
def plain_model(exports):
    return LoadedModel(exports[0])


@pytest.fixture(scope="module")
def compiled_model(exports):
    model = LoadedModel(exports[0], compile=True, threads=2)
    yield model
    model.close()


@pytest.fixture
def copy(exports, tmp_path) -> Path:
    return Path(shutil.copytree(exports[0], tmp_path / "1"))


def change_facts(directory: Path, change) -> None:
    facts = json.loads((directory / FACTS).read_text())
    change(facts)
    (directory / FACTS).write_text(json.dumps(facts))


# LoadedModel


def test_the_golden_vectors_come_out_by_both_paths(plain_model, exports):
    examples = json.loads((exports[0] / FACTS).read_text())["golden"]
    texts = [example["text"].encode() for example in examples]
    expected = np.array([example["embedding"] for example in examples])
    assert len(texts) == len(golden.TEXTS)
    for found in (plain_model.encode(texts), plain_model.respond("serving_default", texts)["embedding"]):
        assert np.abs(found - expected).max() < 1e-5


def test_token_ids_are_those_of_each_text_alone_without_padding(plain_model):
    together = plain_model.tokenize(TEXTS)
    assert len(together) == len(TEXTS) and plain_model.tokenize([]) == []
    for text, ids in zip(TEXTS, together, strict=True):
        assert ids.tolist() == plain_model.tokenize([text])[0].tolist()
        assert plain_model.pad_id not in ids and 1 <= len(ids) <= LENGTH


def test_padded_rows_end_in_padding_and_those_to_spare_repeat_the_first(plain_model):
    pad = plain_model.pad_id
    ids = [np.array([7, 8, 9], np.int32), np.array([5], np.int32)]
    assert plain_model.padded(ids, rows=3, length=4).tolist() == [[7, 8, 9, pad], [5, pad, pad, pad], [7, 8, 9, pad]]


def test_a_run_is_no_longer_than_its_texts_need(plain_model):
    ids = [np.arange(1, 10, dtype=np.int32), np.array([5], np.int32)]
    assert plain_model.padded(ids, rows=2, length=64).shape == (2, 16)  # 9 tokens, in steps of 8


def test_any_number_of_texts_has_the_vectors_that_each_has_alone(plain_model):
    alone = np.concatenate([plain_model.encode([text]) for text in TEXTS])
    for count in (1, 2, 3, 5, 17, 100, 300):
        texts = [TEXTS[number % len(TEXTS)] for number in range(count)]
        expected = np.stack([alone[number % len(TEXTS)] for number in range(count)])
        assert np.abs(plain_model.encode(texts) - expected).max() < 1e-5


def test_versions_differ_in_fingerprint_and_vectors(plain_model, exports):
    other = LoadedModel(exports[1])
    assert other.fingerprint != plain_model.fingerprint
    assert np.abs(other.encode(TEXTS) - plain_model.encode(TEXTS)).max() > 1e-2


def test_the_contract_is_the_one_that_the_graph_states(plain_model):
    stated = json.loads(plain_model.respond("contract", [b""])["contract"][0])
    assert stated["fingerprint"] == plain_model.fingerprint == plain_model.contract.fingerprint
    assert set(plain_model.respond("serving_default", TEXTS)["model"]) == {plain_model.fingerprint.encode()}
    assert {"serving_default", "contract"} <= set(plain_model.signatures)


# what is refused


FAULTS = {
    "a file is missing": (lambda path: (path / "variables/variables.index").unlink(), "variables.index is missing"),
    "a file is cut": (lambda path: (path / DATA).write_bytes((path / DATA).read_bytes()[:-100]), "still being copied"),
    "weights changed": (lambda path: flip(path / DATA), f"{DATA} is damaged"),
    # Only the digest tells: TensorFlow loads it, and it reproduces the golden vectors.
    "the graph changed": (lambda path: flip(path / "saved_model.pb"), "saved_model.pb is damaged"),
    "weights changed, exported without digests": (lambda path: flip(undigested(path) / DATA), "it does not load"),
    "no graph at all, exported without digests": (
        lambda path: flip(undigested(path) / "saved_model.pb", at=0),
        "it does not load",
    ),
    "other golden vectors": (
        lambda path: change_facts(path, lambda facts: facts["golden"][1]["embedding"].reverse()),
        "the golden vectors are not reproduced: cosine .* on golden text 1",
    ),
    "no golden vectors": (lambda path: change_facts(path, lambda facts: facts.pop("golden")), "not as model.export"),
    "none of them": (lambda path: change_facts(path, lambda facts: facts["golden"].clear()), "not reproduced"),
    "a strange contract": (
        lambda path: change_facts(path, lambda facts: facts["contract"].update(soul="none")),
        "not as model.export",
    ),
    "another fingerprint": (
        lambda path: change_facts(path, lambda facts: facts["contract"].update(fingerprint="0" * 16)),
        "is of another model",
    ),
    "no graph for servers that batch": (lambda path: save_bare_model(path), "it has no tokens and vectors"),
    "warm-up cut": (lambda path: cut_warm_up(path), "warm-up"),
}


def flip(path: Path, at: float = 0.5) -> None:
    """Sixteen bytes so far into the file, each to its opposite."""
    data = bytearray(path.read_bytes())
    start = int(len(data) * at)
    data[start : start + 16] = bytes(255 - byte for byte in data[start : start + 16])
    path.write_bytes(data)


def undigested(directory: Path) -> Path:
    """As versions were exported before digests were written."""
    change_facts(directory, lambda facts: facts.pop("sha256"))
    return directory


def cut_warm_up(directory: Path) -> None:
    name = "assets.extra/tf_serving_warmup_requests"
    data = (directory / name).read_bytes()[:-5]
    (undigested(directory) / name).write_bytes(data)
    change_facts(directory, lambda facts: facts["files"].update({name: len(data)}))


def save_bare_model(directory: Path) -> None:
    """A SavedModel of somebody else's, with our facts beside it."""
    facts = json.loads((undigested(directory) / FACTS).read_text())
    shutil.rmtree(directory)
    module = tf.Module()
    module.serve = tf.function(lambda text: {"embedding": text}, input_signature=[tf.TensorSpec([None], tf.string)])
    tf.saved_model.save(module, str(directory), signatures={"serving_default": module.serve})
    facts["files"] = {"saved_model.pb": (directory / "saved_model.pb").stat().st_size}
    (directory / FACTS).parent.mkdir()
    (directory / FACTS).write_text(json.dumps(facts))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_version_is_an_export_error_in_one_line(copy, fault):
    damage, words = FAULTS[fault]
    prove(copy)  # good before
    damage(copy)
    with pytest.raises(ExportError, match=words) as refused:
        prove(copy)
    assert "\n" not in str(refused.value)


# compiled


def test_warm_up_shapes_never_run_uncompiled_after_the_load(compiled_model, plain_model, monkeypatch):
    requests = [[b"company " * words] * texts for texts in (1, 8, 32) for words in (8, 40, 160)]  # as export writes
    expected = [plain_model.encode(texts) for texts in requests]

    def refuse(_):
        raise AssertionError("it ran uncompiled")

    monkeypatch.setattr(compiled_model.vectors, "_plain", refuse)
    for texts, vectors in zip(requests, expected, strict=True):
        assert np.abs(compiled_model.encode(texts) - vectors).max() < 1e-5
    with pytest.raises(AssertionError):
        compiled_model.encode([b""])  # the guard itself: 8 tokens are no shape of the warm-up


def test_what_multiplies_in_bfloat16_is_not_compiled(copy):
    change_facts(copy, lambda facts: facts.update(precision="bfloat16"))
    model = LoadedModel(copy, compile=True)
    assert not model.vectors.ready
    model.vectors.close()


def test_compiled_vectors_equal_plain_ones(compiled_model, plain_model):
    generator = np.random.default_rng(0)
    for rows in (1, 4, 16):
        ids = generator.integers(1, 40, (rows, LENGTH), np.int32)
        ids[rows // 2, 5:] = plain_model.pad_id
        assert (rows, LENGTH) in compiled_model.vectors.ready
        assert np.abs(compiled_model.vectors(ids) - plain_model.vectors(ids)).max() < 1e-5


class Counted:
    """Runs as they are eagerly; those that XLA traces are told apart."""

    def __init__(self, function):
        self.function, self.plain_runs = function, 0

    def __call__(self, token_ids):
        self.plain_runs += tf.executing_eagerly()
        return self.function(token_ids)


@pytest.fixture
def counted(plain_model):
    return Counted(plain_model.module.vectors)


@pytest.fixture
def open_vectors():
    opened = []

    def make(function, enabled: bool = True) -> CompiledVectors:
        opened.append(CompiledVectors(function, enabled, some_token=1))
        return opened[-1]

    yield make
    for vectors in opened:
        vectors.close()


def settle(vectors: CompiledVectors) -> None:
    """Returns when all that was to be compiled in the background is."""
    vectors.settle(60)


def test_a_shape_asked_for_often_is_compiled_in_the_background(open_vectors, counted):
    vectors, ids = open_vectors(counted), np.full((2, 5), 3, np.int32)
    before, *_ = [vectors(ids) for _ in range(ASKED_OFTEN - 1)]
    settle(vectors)
    assert counted.plain_runs == ASKED_OFTEN - 1  # nothing was compiled, or it would have been compared once
    vectors(ids)
    settle(vectors)
    runs = counted.plain_runs
    after = [vectors(ids) for _ in range(5)][-1]
    assert counted.plain_runs == runs == ASKED_OFTEN + 1
    assert np.abs(after - before).max() < 1e-5
    vectors(np.full((3, 5), 3, np.int32))
    assert counted.plain_runs == runs + 1  # another shape is another program


def test_nothing_is_compiled_where_that_is_switched_off(open_vectors, counted):
    vectors, ids = open_vectors(counted, enabled=False), np.full((2, 5), 3, np.int32)
    vectors.prepare([(2, 5)], threads=1)
    for _ in range(ASKED_OFTEN + 1):
        vectors(ids)
    settle(vectors)
    assert counted.plain_runs == ASKED_OFTEN + 2  # the preparation ran it once


@pytest.mark.parametrize("wrong", [1.1, float("nan")])
def test_a_shape_that_comes_out_otherwise_when_compiled_stays_plain(open_vectors, caplog, wrong):
    vectors = open_vectors(lambda ids: tf.ones_like(ids, tf.float32) * (1.0 if tf.executing_eagerly() else wrong))
    vectors.prepare([(2, 5)], threads=1)
    assert vectors(np.full((2, 5), 3, np.int32)).tolist() == [[1.0] * 5] * 2
    assert "stays plain" in caplog.text


def test_a_shape_that_does_not_compile_stays_plain(open_vectors, caplog):
    def plain(ids):  # strings are none of XLA's types
        return tf.strings.to_number(tf.strings.as_string(ids))

    vectors = open_vectors(plain)
    vectors.prepare([(2, 5)], threads=1)
    assert vectors(np.full((2, 5), 3, np.int32)).tolist() == [[3.0] * 5] * 2
    assert "does not compile and stays plain" in caplog.text


def test_one_version_after_the_other_is_compiled_without_a_warning(open_vectors, caplog):
    for _ in range(8):
        open_vectors(lambda ids: tf.cast(ids, tf.float32)).prepare([(1, 2)], threads=1)
    assert caplog.messages == []


# versions of one architecture


def test_a_version_of_the_same_architecture_uses_what_the_one_before_has_compiled(compiled_model, exports):
    other = LoadedModel(exports[1], compile=True, like=compiled_model)
    assert other.vectors.program is compiled_model.vectors.program
    assert other.vectors.ready >= compiled_model.vectors.ready != set()
    plain = LoadedModel(exports[1])
    for texts in (TEXTS[:1] * 8, TEXTS):
        assert np.abs(other.encode(texts) - plain.encode(texts)).max() < 1e-5  # by weights of its own
        assert np.abs(other.encode(texts) - compiled_model.encode(texts)).max() > 1e-2
    other.close()


def test_a_shape_that_traffic_had_compiled_is_compiled_for_the_next_version_too(open_vectors, plain_model):
    first = open_vectors(plain_model.module.vectors)
    first.prepare([(3, 7)], threads=1)
    second = CompiledVectors(plain_model.module.vectors, True, some_token=1, like=first)
    second.prepare([(1, 2)], threads=1)
    assert second.ready == {(3, 7), (1, 2)}
    second.close()


def test_a_version_of_another_architecture_is_compiled_for_itself(open_vectors, plain_model):
    first = open_vectors(plain_model.module.vectors)
    first.prepare([(3, 7)], threads=1)
    second = CompiledVectors(lambda ids: tf.cast(ids, tf.float32), True, some_token=1, like=first)
    second.prepare([(1, 2)], threads=1)
    assert second.ready == {(1, 2)} and second(np.ones((1, 2), np.int32)).tolist() == [[1.0, 1.0]]
    second.close()


def test_the_weights_of_a_version_go_with_it_though_its_programs_stay(exports):
    first = LoadedModel(exports[0], compile=True)
    weights = weakref.ref(first.module.vectors.concrete_functions[0].variables[0])
    second = LoadedModel(exports[1], compile=True, like=first)
    first.close()
    del first
    gc.collect()
    assert weights() is None and second.vectors.ready
    second.close()
