"""Pooling, projection and batching; the numbers come from a body whose states are written down here."""

import json
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf

from model.network.encoder import Encoder, length_batches, load_encoder
from model.network.sources import EncoderError, Source
from model.network.tokenizer import SPECIAL_TOKENS

VOCABULARY = (*SPECIAL_TOKENS, "bank", "farm")
GARBAGE = 1e6
#         [PAD]               [UNK]       [CLS]       [SEP]       [MASK]      bank        farm
STATES = [[GARBAGE, GARBAGE], [0.0, 0.0], [1.0, 0.0], [2.0, 3.0], [0.0, 0.0], [6.0, 9.0], [0.0, -6.0]]
CLS, SEP, BANK, FARM = 2, 3, 5, 6


class WrittenBody(keras.layers.Layer):
    """Looks each token's state up, whatever stands beside it, and remembers what it was given."""

    def call(self, inputs, training=False):
        self.inputs = inputs
        return tf.gather(tf.constant(STATES), inputs["token_ids"])


def written(max_tokens=None, projection=None):
    source = Source(WrittenBody(), VOCABULARY, True, max_tokens=8, position_limit=16, save=lambda directory: None)
    return Encoder(source, max_tokens, projection)


@pytest.fixture(scope="module")
def scratch(scratch_directory):
    return load_encoder(str(scratch_directory))


# pooling


def test_the_mean_runs_over_real_tokens_only():
    # [CLS] bank [SEP]: ((1 + 6 + 2) / 3, (0 + 9 + 3) / 3) = (3, 4), whatever the padding's states are
    encoder = written()
    alone = encoder.pool(tf.constant([[CLS, BANK, SEP]]))
    np.testing.assert_allclose(alone, [[3.0, 4.0]], rtol=1e-6)
    padded = encoder.pool(tf.constant([[CLS, BANK, SEP, 0, 0], [CLS, BANK, FARM, FARM, SEP]]))
    # the second row has no padding: (9 / 5, (0 + 9 - 6 - 6 + 3) / 5)
    np.testing.assert_allclose(padded, [[3.0, 4.0], [1.8, 0.0]], atol=1e-6)


def test_the_body_is_told_what_is_padding():
    encoder = written()
    encoder.pool(tf.constant([[CLS, SEP, 0], [CLS, BANK, SEP]]))
    given = {name: tensor.numpy().tolist() for name, tensor in encoder.body.inputs.items()}
    assert given["padding_mask"] == [[1, 1, 0], [1, 1, 1]]
    assert given["segment_ids"] == [[0, 0, 0], [0, 0, 0]]
    assert given["token_ids"] == [[CLS, SEP, 0], [CLS, BANK, SEP]]


def test_a_row_of_padding_alone_is_zero_and_not_nan():
    np.testing.assert_array_equal(written().pool(tf.constant([[0, 0]])), [[0.0, 0.0]])


# projection


def test_a_projection_of_equal_size_starts_as_the_identity():
    encoder = written(projection=2)
    assert encoder.dimension == 2
    assert [tuple(variable.shape) for variable in encoder.trainable_variables] == [(2, 2)]
    np.testing.assert_array_equal(encoder.encode(["bank", "farm"]), written().encode(["bank", "farm"]))


def test_a_projection_of_another_size_decides_the_dimension():
    encoder = written(projection=5)
    assert encoder.dimension == 5
    assert encoder.encode(["bank"]).shape == (1, 5)
    assert encoder.encode(["bank"], project=False).shape == (1, 2)
    # orthonormal rows keep lengths as they are: |(3, 4)| = 5
    assert np.linalg.norm(encoder(tf.constant([[CLS, BANK, SEP]]))) == pytest.approx(5.0, rel=1e-5)


# encode


def test_vectors_have_unit_length_and_pooled_ones_stay_as_they_are():
    # (3, 4) / 5
    np.testing.assert_allclose(written().encode(["bank"]), [[0.6, 0.8]], rtol=1e-6)
    np.testing.assert_allclose(written().encode(["bank"], project=False), [[3.0, 4.0]], rtol=1e-6)


def test_no_texts_give_no_vectors(scratch):
    assert scratch.encode([]).shape == (0, 32)
    assert written(projection=5).encode([], project=False).shape == (0, 2)
    assert scratch.encode([]).dtype == np.float32


def test_vectors_come_in_the_order_of_the_texts():
    # longest first inside; bank = (3, 4) / 5, and farm = ((1 + 0 + 2) / 3, (0 - 6 + 3) / 3) = (1, -1)
    found = written().encode(["farm", "bank", "farm farm farm", "farm"], project=False)
    np.testing.assert_allclose(found, [[1, -1], [3, 4], [0.6, -3], [1, -1]], rtol=1e-6)


def test_each_distinct_text_is_encoded_once():
    done = []
    vectors = written().encode(["bank", "farm", "bank", "bank", "farm"], done.append)
    assert sum(done) == 2
    np.testing.assert_array_equal(vectors[[0, 1]][[0, 1, 0, 0, 1]], vectors)


def test_a_text_has_the_same_vector_alone_and_in_company(minilm):
    words = "the firm brews beer and sells it to pubs in towns of the north where winters are long".split()
    crowd = [" ".join((words * 5)[:count]) for count in [*range(1, 39), 60, 80]]
    text = "A brewery that makes craft beer."
    assert len(crowd) == 40
    together = minilm.encode([*crowd[:20], text, *crowd[20:]])
    np.testing.assert_allclose(together[20], minilm.encode([text])[0], atol=1e-5)
    np.testing.assert_allclose(together[-1], minilm.encode([crowd[-1]])[0], atol=1e-5)  # the longest
    np.testing.assert_allclose(together[0], minilm.encode([crowd[0]])[0], atol=1e-5)  # the shortest
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1.0, atol=1e-5)


def test_a_weight_that_changes_after_the_first_call_counts_in_the_next():
    encoder = written(projection=2)
    np.testing.assert_allclose(encoder.encode(["bank"]), [[0.6, 0.8]], rtol=1e-6)
    encoder.projection.kernel.assign([[0.0, 1.0], [1.0, 0.0]])
    np.testing.assert_allclose(encoder.encode(["bank"]), [[0.8, 0.6]], rtol=1e-6)


def test_tokenizing_in_chunks_is_tokenizing_at_once():
    texts = ["bank", "", "bank farm", "farm", "bank bank bank"]
    expected = [[CLS, BANK, SEP], [CLS, SEP], [CLS, BANK, FARM, SEP], [CLS, FARM, SEP], [CLS, BANK, BANK, BANK, SEP]]
    assert [ids.tolist() for ids in written().tokenize(texts)] == expected
    assert [ids.tolist() for ids in written().tokenize(texts, chunk=2)] == expected
    assert written().tokenize([]) == []


def test_half_a_surrogate_pair_fails_no_text():
    half = json.loads('"bank \\ud800"')
    with pytest.raises(UnicodeEncodeError):
        half.encode()
    whole, broken = written().tokenize(["farm", half])
    assert whole.tolist() == [CLS, FARM, SEP]
    assert broken.tolist()[:2] == [CLS, BANK]


def test_padded_rows_are_as_long_as_the_longest():
    rows = [np.array([CLS, SEP]), np.array([CLS, BANK, SEP])]
    assert written().padded(rows).tolist() == [[CLS, SEP, 0], [CLS, BANK, SEP]]
    assert written().padded([]).shape == (0, 1)


@pytest.mark.parametrize("max_tokens", [-1, 0, 2, 17])
def test_a_length_the_body_cannot_take_is_refused(max_tokens):
    with pytest.raises(EncoderError, match=f"max_tokens is {max_tokens}; this encoder takes 3 to 16"):
        written(max_tokens)


@pytest.mark.parametrize(("max_tokens", "taken"), [(None, 8), (3, 3), (16, 16)])
def test_lengths_up_to_the_position_limit_are_taken(max_tokens, taken):
    encoder = written(max_tokens)
    assert encoder.tokenizer.max_tokens == taken
    assert len(encoder.tokenize(["bank " * 40])[0]) == taken


# length_batches


def test_batches_go_from_long_to_short_within_the_token_budget():
    # lengths by row 5 2 9 2 4, budget 10: 9 fills a batch; 2 rows x 5 = 10; then 5 rows x 2 = 10 would be free for two
    batches = length_batches([5, 2, 9, 2, 4], tokens_per_batch=10)
    assert [batch.tolist() for batch in batches] == [[2], [0, 4], [1, 3]]


def test_a_row_over_the_budget_goes_alone():
    assert [batch.tolist() for batch in length_batches([3, 50, 3], tokens_per_batch=10)] == [[1], [0, 2]]


def test_every_row_is_in_one_batch_and_no_batch_over_the_budget():
    lengths = np.random.default_rng(0).integers(2, 60, 200)
    batches = length_batches(lengths, tokens_per_batch=256)
    assert sorted(np.concatenate(batches)) == list(range(200))
    assert max(len(batch) * lengths[batch].max() for batch in batches) <= 256
    assert [max(lengths[batch]) for batch in batches] == sorted((max(lengths[b]) for b in batches), reverse=True)
    assert length_batches([]) == []


# the fingerprint


def test_two_loads_have_one_fingerprint(scratch, scratch_directory, tmp_path):
    copy = shutil.copytree(scratch_directory, tmp_path / "elsewhere")
    assert load_encoder(str(copy)).fingerprint("{description}") == scratch.fingerprint("{description}")


def test_the_fingerprint_changes_with_weights_recipe_and_length(scratch_directory):
    encoder = load_encoder(str(scratch_directory), projection=32)
    before = encoder.fingerprint("{description}")
    assert encoder.fingerprint("{industry}. {description}") != before
    shorter = load_encoder(str(scratch_directory), max_tokens=64, projection=32)
    assert shorter.fingerprint("{description}") != before
    for variable in (encoder.projection.kernel, encoder.body.trainable_variables[0]):
        old = variable.numpy()
        changed = old.copy()
        changed.flat[0] += 1e-3
        variable.assign(changed)
        assert encoder.fingerprint("{description}") != before
        variable.assign(old)
        assert encoder.fingerprint("{description}") == before


def test_freezing_and_using_an_encoder_leave_its_fingerprint(scratch_directory):
    encoder = load_encoder(str(scratch_directory))
    before = encoder.fingerprint("{description}")
    encoder(encoder.padded(encoder.tokenize(["a bank"])), training=True)  # moves the seeds of dropout
    encoder.body.trainable = False
    assert not encoder.trainable_variables
    assert encoder.fingerprint("{description}") == before


# precision


def test_bfloat16_keeps_directions_and_has_a_fingerprint_of_its_own(scratch_directory):
    texts = ["a bank", "beer and ale", "a bank " * 20]
    exact, coarse = load_encoder(str(scratch_directory)), load_encoder(str(scratch_directory))
    coarse.multiply_in_bfloat16()
    expected, found = exact.encode(texts), coarse.encode(texts)
    assert found.dtype == np.float32
    # Eight bits of mantissa round by 0.4 % at most; that it did round shows that the matrices took part.
    assert np.abs(found - expected).max() > 1e-5
    assert (found * expected).sum(axis=1).min() > 0.999
    assert coarse.fingerprint("{description}") != exact.fingerprint("{description}")


def test_an_encoder_without_matrices_of_its_own_stays_in_float32():
    with pytest.raises(EncoderError, match="only float32"):
        written().multiply_in_bfloat16()
