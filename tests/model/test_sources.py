"""Every kind of source that an encoder can come from, and one line for every one that it cannot. No network."""

import json
import shutil
import sys
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf

from model.network.encoder import Encoder, load_encoder
from model.network.sources import PAPER_TOKENS, EncoderError, load_source
from model.network.tokenizer import SPECIAL_TOKENS

# U+2028 is a line break to Python's splitlines, but not to the makers of vocabularies.
VOCABULARY = (*SPECIAL_TOKENS, "\u2028", "bank", "farm")
BANK, FARM = 6, 7
POSITIONS = 16


def refusal(spec, texts=("a bank",)):
    with pytest.raises(EncoderError) as refused:
        load_source(str(spec), texts)
    message = str(refused.value)
    assert "\n" not in message
    return message


def write(directory, **files):
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (directory / name.replace("__", ".")).write_text(content)
    return directory


# scratch


def test_a_scratch_encoder_learns_its_vocabulary_from_the_texts():
    source = load_source("scratch:L1-H32", ["Bank for farmers", "farm rockets"])
    assert source.vocabulary[:5] == SPECIAL_TOKENS
    assert {"b", "f", "##s"} <= set(source.vocabulary)  # its letters at the least
    assert not {"z", "##z"} & set(source.vocabulary)
    assert source.lower_case
    assert source.max_tokens == PAPER_TOKENS
    assert Encoder(source).dimension == 32


@pytest.mark.parametrize(
    "spec", ["scratch:", "scratch:L0-H32", "scratch:L2-H0", "scratch:L2-H31", "scratch:H32-L2", "scratch:L2-H32x"]
)
def test_a_misspelt_scratch_encoder_is_refused_with_the_right_spelling(spec):
    message = refusal(spec)
    assert repr(spec) in message
    assert "scratch:L2-H128" in message


def test_a_scratch_encoder_without_texts_is_refused():
    assert "no texts to learn its vocabulary from" in refusal("scratch:L1-H32", texts=())


# Keras Hub


def test_a_saved_source_loads_with_the_same_vectors(tmp_path, texts):
    source = load_source("scratch:L1-H32", texts)
    source.save(tmp_path / "encoder")
    loaded = load_source(str(tmp_path / "encoder"))
    assert loaded.vocabulary == source.vocabulary
    assert loaded.lower_case
    np.testing.assert_array_equal(Encoder(loaded).encode(texts), Encoder(source).encode(texts))


def test_saving_over_a_former_save_leaves_the_later_one(tmp_path, texts):
    source = load_source("scratch:L1-H32", texts)
    source.save(tmp_path / "encoder")
    variable = source.body.trainable_variables[0]
    variable.assign(variable + 1.0)
    source.save(tmp_path / "encoder")
    later = load_source(str(tmp_path / "encoder")).body.trainable_variables[0]
    np.testing.assert_array_equal(later.numpy(), variable.numpy())


def test_a_body_without_segments_loads_too(tmp_path):
    import keras_hub

    sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 8, "max_sequence_length": POSITIONS}
    backbone = keras_hub.models.DistilBertBackbone(vocabulary_size=len(VOCABULARY), **sizes)
    assert "segment_ids" not in backbone.input
    backbone.save_to_preset(str(tmp_path / "distilled"))
    tokenizer = keras_hub.models.DistilBertTokenizer(vocabulary=[*SPECIAL_TOKENS, "a", "bank", "farm"], lowercase=True)
    tokenizer.save_to_preset(str(tmp_path / "distilled"))
    encoder = load_encoder(str(tmp_path / "distilled"))
    assert encoder.tokenizer.max_tokens == POSITIONS
    encoder.source.save(tmp_path / "again")
    np.testing.assert_array_equal(
        load_encoder(str(tmp_path / "again")).encode(["bank", "a farm"]), encoder.encode(["bank", "a farm"])
    )


def test_an_unknown_preset_is_refused():
    message = refusal("no_such_preset")
    assert "'no_such_preset'" in message
    assert "accepted: scratch:" in message


def test_a_preset_whose_weights_are_broken_is_refused(tmp_path, scratch_directory):
    broken = shutil.copytree(scratch_directory, tmp_path / "broken")
    assert (broken / "model.weights.h5").exists()
    (broken / "model.weights.h5").write_text("rubbish")
    assert str(broken) in refusal(broken)


def test_a_preset_with_another_kind_of_tokenizer_is_refused(monkeypatch):
    import keras_hub

    monkeypatch.setattr(keras_hub.models.Tokenizer, "from_preset", lambda preset: object())
    assert "WordPiece" in refusal("gpt2_base_en")


def test_a_keras_hub_directory_without_vocabulary_is_refused(tmp_path, scratch_directory):
    bare = shutil.copytree(scratch_directory, tmp_path / "bare")
    (bare / "assets" / "tokenizer" / "vocabulary.txt").unlink()
    message = refusal(bare)
    assert str(bare) in message
    assert "vocabulary.txt" in message


# Hugging Face


def test_the_base_encoder_is_what_its_makers_say(minilm):
    assert minilm.dimension == 384
    assert minilm.source.lower_case
    assert minilm.source.max_tokens == 256
    assert minilm.source.position_limit == 512
    assert len(minilm.source.vocabulary) == 30522


def test_paraphrases_lie_close_and_strangers_apart(minilm):
    brewery, brewer, rockets = minilm.encode(
        ["A brewery that makes craft beer.", "The company brews craft beers.", "Builds rockets for small satellites."]
    )
    assert brewery @ brewer > 0.7
    assert brewery @ brewer > brewery @ rockets + 0.4


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"config__json": '{"model_type": "bert"}'}, "no vocabulary (vocab.txt)"),
        ({"config__json": '{"model_type": "bert"}', "vocab__txt": "[PAD]"}, "no weights (model.safetensors)"),
        ({"config__json": '{"model_type": "gpt2"}'}, "'gpt2'"),
        (
            {"config__json": '{"model_type": "bert"}', "vocab__txt": "[PAD]", "model__safetensors": "rubbish"},
            "cannot be loaded",
        ),
    ],
)
def test_a_hugging_face_directory_that_lacks_something_is_refused(tmp_path, files, said):
    directory = write(tmp_path / "hugging", **files)
    message = refusal(directory)
    assert str(directory) in message
    assert said in message


# directories and packages


@pytest.mark.parametrize("files", [{}, {"config__json": "no json"}])
def test_a_directory_that_is_no_model_is_refused(tmp_path, files):
    message = refusal(write(tmp_path / "something", **files))
    assert str(tmp_path / "something") in message
    assert "accepted: scratch:" in message


def test_a_directory_that_is_not_there_is_refused(tmp_path):
    message = refusal(tmp_path / "nothing")
    assert repr(str(tmp_path / "nothing")) in message
    assert "no such directory" in message


@pytest.mark.parametrize("name", ["no_such_package", "no-such", "", "json.decoder"])
def test_an_unknown_package_is_refused(name):
    message = refusal(f"package:{name}")
    assert repr(f"package:{name}") in message
    assert "make setup" in message


def test_a_package_without_a_model_is_refused():
    assert "no model.safetensors" in refusal("package:json")


# TF Hub


class TinyBert(tf.Module):
    """What a BERT of TF Hub offers: word + position vectors, doubled in training so that it can be told apart."""

    variables = trainable_variables = ()  # plain attributes: the properties of tf.Module are not saved

    def __init__(self, vocabulary):
        super().__init__()
        generator = np.random.default_rng(0)
        words, positions = (generator.normal(size=[rows, 4]) for rows in (len(VOCABULARY), POSITIONS))
        self.words = tf.Variable(words, dtype=tf.float32, name="word_embeddings/embeddings")
        self.positions = tf.Variable(positions, dtype=tf.float32, name="position_embedding/embeddings")
        self.do_lower_case = tf.Variable(True, trainable=False, name="do_lower_case")
        self.vocab_file = tf.saved_model.Asset(str(vocabulary))
        self.trainable_variables = [self.words, self.positions]
        self.variables = [self.words, self.positions, self.do_lower_case]

    @tf.function
    def __call__(self, inputs, training=False):
        ids, mask, types = (inputs[name] for name in ("input_word_ids", "input_mask", "input_type_ids"))
        states = tf.gather(self.words, ids + types) + self.positions[: tf.shape(ids)[1]]
        states *= tf.cast(mask, tf.float32)[:, :, tf.newaxis] * (2.0 if training else 1.0)
        return {"sequence_output": states, "pooled_output": states[:, 0]}


@pytest.fixture(scope="module")
def hub_directory(tmp_path_factory):
    directory = tmp_path_factory.mktemp("hub")
    (directory / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    tiny = TinyBert(directory / "vocab.txt")
    inputs = {
        name: tf.TensorSpec([None, None], tf.int32, name=name)
        for name in ("input_word_ids", "input_mask", "input_type_ids")
    }
    for training in (False, True):
        tiny.__call__.get_concrete_function(inputs, training=training)
    tf.saved_model.save(tiny, str(directory / "model"))
    return directory / "model"


def test_a_local_tf_hub_model_brings_its_vocabulary_and_position_limit(hub_directory):
    source = load_source(str(hub_directory))
    assert source.vocabulary == VOCABULARY
    assert source.lower_case is True
    assert source.max_tokens == source.position_limit == POSITIONS


def test_a_tf_hub_body_is_pooled_over_its_token_states(hub_directory):
    # "Bank" is [CLS] bank [SEP]: the mean of word vectors 2, 6, 3 plus that of positions 0, 1, 2; twice it in training
    encoder = load_encoder(str(hub_directory))
    words, positions = (variable.numpy() for variable in encoder.body.restored.trainable_variables)
    expected = words[[2, BANK, 3]].mean(axis=0) + positions[:3].mean(axis=0)
    np.testing.assert_allclose(encoder.encode(["Bank"], project=False)[0], expected, atol=1e-6)
    np.testing.assert_allclose(encoder(tf.constant([[2, BANK, 3]]), training=True)[0], 2 * expected, atol=1e-6)


def test_training_changes_the_very_variables_of_a_tf_hub_body(hub_directory, tmp_path):
    encoder = load_encoder(str(hub_directory))
    before = [variable.numpy().copy() for variable in encoder.body.restored.trainable_variables]
    untrained = encoder.encode(["bank", "farm"])
    assert len(encoder.trainable_variables) == 2
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(encoder(tf.constant([[2, BANK, 3]]), training=True) ** 2)
    optimizer = keras.optimizers.SGD(0.1)
    optimizer.apply(tape.gradient(loss, encoder.trainable_variables), encoder.trainable_variables)
    for old, adopted, restored in zip(
        before, encoder.trainable_variables, encoder.body.restored.trainable_variables, strict=True
    ):
        assert np.abs(old - restored.numpy()).max() > 0.01
        np.testing.assert_array_equal(adopted.numpy(), restored.numpy())
    np.testing.assert_array_equal(before[0][FARM], encoder.trainable_variables[0].numpy()[FARM])  # not in the batch

    encoder.source.save(tmp_path / "trained")
    reloaded = load_encoder(str(tmp_path / "trained"))
    assert np.abs(untrained - encoder.encode(["bank", "farm"])).max() > 0.01
    np.testing.assert_array_equal(reloaded.encode(["bank", "farm"]), encoder.encode(["bank", "farm"]))
    assert reloaded.source.vocabulary == VOCABULARY
    assert reloaded.fingerprint("{description}") == encoder.fingerprint("{description}")


def test_a_tf_hub_handle_is_resolved_and_its_local_copy_loaded(hub_directory, monkeypatch):
    handle = "https://tfhub.dev/tensorflow/bert/1"
    copies = {handle: str(hub_directory)}
    monkeypatch.setitem(sys.modules, "tensorflow_hub", SimpleNamespace(resolve=copies.__getitem__))
    assert load_source(handle).vocabulary == VOCABULARY


def test_a_tf_hub_handle_out_of_reach_is_refused(monkeypatch):
    def resolve(handle):
        raise OSError("connection refused\nsome more lines")

    monkeypatch.setitem(sys.modules, "tensorflow_hub", SimpleNamespace(resolve=resolve))
    message = refusal("https://tfhub.dev/tensorflow/bert/1")
    assert "'https://tfhub.dev/tensorflow/bert/1' cannot be loaded (connection refused)" in message
    assert "some more lines" not in message


def test_a_broken_saved_model_is_refused(tmp_path):
    message = refusal(write(tmp_path / "broken", saved_model__pb="rubbish"))
    assert str(tmp_path / "broken") in message
    assert "cannot be loaded" in message


@pytest.mark.parametrize("lacking", ["vocab_file", "do_lower_case", "variables"])
def test_a_saved_model_that_is_no_bert_of_tf_hub_is_refused(tmp_path, lacking):
    (tmp_path / "vocab.txt").write_text("\n".join(VOCABULARY))
    module = tf.train.Checkpoint()
    if lacking != "vocab_file":
        module.vocab_file = tf.saved_model.Asset(str(tmp_path / "vocab.txt"))
    if lacking == "variables":
        module.do_lower_case = tf.Variable(True, trainable=False)
    tf.saved_model.save(module, str(tmp_path / "model"))
    message = refusal(tmp_path / "model")
    assert str(tmp_path / "model") in message
    assert f"no {lacking} in this TF Hub model" in message


def test_a_trained_encoder_is_a_source_again(scratch_directory):
    # Keras Hub itself can open it: the files are those of its own format
    import keras_hub

    assert json.loads((scratch_directory / "config.json").read_text())["class_name"] == "BertBackbone"
    assert keras_hub.models.BertBackbone.from_preset(str(scratch_directory)).hidden_dim == 32
