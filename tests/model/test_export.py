import hashlib
import json
import re

import numpy as np
import pytest
import tensorflow as tf

from model.contract import Contract
from model.export import main
from model.network import golden


@pytest.fixture(scope="module")
def version(trained, tmp_path_factory):
    base = tmp_path_factory.mktemp("serving") / "pause"
    assert main(["--model", str(trained), "--to", str(base)]) == 0
    return base / "1"


@pytest.fixture(scope="module")
def served(version):
    return tf.saved_model.load(str(version)).signatures


def embed(served, texts) -> np.ndarray:
    return served["serving_default"](text=tf.constant(texts, tf.string, shape=[len(texts)]))["embedding"].numpy()


ODD = {
    "blank": "",
    "spaces": "   ",
    "long": "bank " * 20_000,  # 100,000 characters
    "one long word": "x" * 100_000,
    "emoji": "🚀 rockets 🛰️",
    "Chinese": "为中小企业提供云端会计软件。",
    "NUL": "a\0b",
    "no UTF-8": b"\xff\xfe bank",
}


@pytest.mark.parametrize("kind", ODD)
def test_a_text_has_the_same_unit_vector_alone_and_among_a_thousand_others(served, kind):
    others = ["bank loans " * (number % 40) for number in range(1000)]
    alone = embed(served, [ODD[kind]])
    among = embed(served, [*others[:500], ODD[kind], *others[500:]])
    assert alone.shape == (1, 32) and among.shape == (1001, 32)
    assert np.linalg.norm(alone) == pytest.approx(1.0, abs=1e-5)
    assert np.abs(alone[0] - among[500]).max() < 1e-5


def test_the_order_of_a_request_is_kept_although_texts_are_encoded_by_length(served):
    texts = ["bank", "beer ale lager hops malt", "", "car engine"] * 200
    together = embed(served, texts)
    for row in (0, 1, 2, 3, 797):
        assert np.abs(together[row] - embed(served, [texts[row]])[0]).max() < 1e-5


def test_an_empty_batch_has_no_vectors(served):
    answer = served["serving_default"](text=tf.constant([], tf.string))
    assert answer["embedding"].shape == (0, 32) and answer["model"].shape == (0,)


def test_every_vector_names_its_model_and_the_contract_is_answered_to_any_text(served, trained):
    fingerprint = json.loads((trained / "metrics.json").read_text())["fingerprint"]
    answer = served["serving_default"](text=tf.constant(["a", "b"]))
    assert list(answer["model"].numpy()) == [fingerprint.encode()] * 2
    said = served["contract"](text=tf.constant(["", ""]))["contract"].numpy()
    assert said[0] == said[1]
    assert Contract.from_json(said[0]) == Contract(fingerprint, 32, 16, "{description}")


def test_the_facts_beside_the_model_hold_contract_golden_vectors_and_lineage(version, served, trained):
    facts = json.loads((version / "assets.extra" / "pause.json").read_text())
    assert facts["contract"]["fingerprint"] == json.loads((trained / "metrics.json").read_text())["fingerprint"]
    vectors = np.array([row["embedding"] for row in facts["golden"]], np.float32)
    assert golden.disagreement(vectors, embed(served, [row["text"] for row in facts["golden"]])) is None
    assert facts["lineage"]["config"]["config"]["epochs"] == 6
    assert set(facts["lineage"]["metrics"]["data"]) == {"pairs"}
    assert facts["lineage"]["exported_at"].startswith("20")


def test_the_facts_list_every_other_file_with_its_size_and_digest(version):
    facts = version / "assets.extra" / "pause.json"
    others = [path for path in version.rglob("*") if path.is_file() and path != facts]
    assert {"saved_model.pb", "variables.index", "tf_serving_warmup_requests"} <= {path.name for path in others}
    expected = {path.relative_to(version).as_posix(): path.stat().st_size for path in others}
    assert json.loads(facts.read_text())["files"] == expected
    digests = {path.relative_to(version).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in others}
    assert json.loads(facts.read_text())["sha256"] == digests
    assert all(path.stat().st_mtime_ns <= facts.stat().st_mtime_ns for path in others)


def test_warm_up_records_replay_against_the_model(version, served):
    from tensorflow_serving.apis import prediction_log_pb2

    records = list(tf.data.TFRecordDataset(str(version / "assets.extra" / "tf_serving_warmup_requests")))
    logs = [prediction_log_pb2.PredictionLog.FromString(record.numpy()) for record in records]
    sizes = []
    for log in logs:
        request = log.predict_log.request
        assert request.model_spec.name == "pause"
        texts = tf.make_ndarray(request.inputs["text"])
        sizes.append((len(texts), len(embed(served, list(texts)))))
    assert sorted({size for size, _ in sizes}) == [1, 8, 32]
    assert all(sent == answered for sent, answered in sizes)


def test_both_halves_of_the_model_are_there_for_servers_that_batch_by_tokens(version, served):
    loaded = tf.saved_model.load(str(version))
    tokens = loaded.tokens(tf.constant(["bank loans", "beer"]))
    ids = tf.RaggedTensor.from_row_lengths(tokens["ids"], tokens["lengths"]).to_tensor()
    assert np.abs(loaded.vectors(ids).numpy() - embed(served, ["bank loans", "beer"])).max() < 1e-5


def test_bfloat16_is_another_model_that_proves_itself_and_says_how_fast_it_is(
    trained, tmp_path, version, served, capsys
):
    assert main(["--model", str(trained), "--to", str(tmp_path), "--precision", "bfloat16"]) == 0
    told = capsys.readouterr()
    assert told.out.strip() == str(tmp_path / "1")
    assert re.match(r"bfloat16 encodes \d+\.\d\d x as many texts a second as float32 on this CPU", told.err)
    exact, coarse = (
        json.loads((place / "assets.extra" / "pause.json").read_text()) for place in (version, tmp_path / "1")
    )
    assert (exact["precision"], coarse["precision"]) == ("float32", "bfloat16")
    assert exact["contract"]["fingerprint"] != coarse["contract"]["fingerprint"]
    speed = coarse["lineage"]["speed"]
    assert speed["ratio"] == pytest.approx(speed["texts"] / speed["float32_texts"])
    assert f"{speed['ratio']:.2f} x" in told.err and "speed" not in exact["lineage"]
    texts = ["bank loans", "beer ale lager", ""]
    found = embed(tf.saved_model.load(str(tmp_path / "1")).signatures, texts)
    assert (found * embed(served, texts)).sum(axis=1).min() > 0.999


def test_each_export_takes_the_next_number_and_strangers_in_the_base_path_do_not_matter(trained, tmp_path):
    (tmp_path / "6").mkdir()
    (tmp_path / "7.withdrawn").mkdir()
    (tmp_path / "notes").mkdir()
    assert main(["--model", str(trained), "--to", str(tmp_path)]) == 0
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["6", "7.withdrawn", "8", "notes"]


def test_a_model_that_changes_in_export_is_not_kept(trained, tmp_path, monkeypatch, capsys):
    from model.network.encoder import Encoder

    honest = Encoder.encode
    monkeypatch.setattr(Encoder, "encode", lambda self, texts: -honest(self, texts))
    assert main(["--model", str(trained), "--to", str(tmp_path / "base")]) == 2
    error = capsys.readouterr().err.strip()
    assert "does not reproduce" in error and "\n" not in error
    assert list((tmp_path / "base").iterdir()) == []


def test_a_missing_model_is_one_line_and_exit_code_2(tmp_path, capsys):
    assert main(["--model", str(tmp_path / "none"), "--to", str(tmp_path / "base")]) == 2
    assert "no such directory" in capsys.readouterr().err
    assert not (tmp_path / "base").exists()


def test_golden_vectors_that_differ_are_told_apart_from_rounding():
    vectors = np.eye(len(golden.TEXTS), dtype=np.float32)
    assert golden.disagreement(vectors, vectors * np.float32(1.0000001)) is None
    # cos(0.01) = 0.99995, below 0.99999
    turned = vectors.copy()
    turned[2, 2], turned[2, 3] = np.cos(0.01), np.sin(0.01)
    assert "golden text 2" in (golden.disagreement(vectors, turned) or "")
    assert "shape" in (golden.disagreement(vectors, vectors[:-1]) or "")
    assert "not finite" in (golden.disagreement(vectors, vectors * np.nan) or "")
