"""Token ids worked by hand on a vocabulary of thirteen."""

import pytest
import tensorflow as tf

from model.errors import EncoderError
from model.network.tokenizer import SPECIAL_TOKENS, Tokenizer, learn_vocabulary

#             0        1        2        3        4         5       6      7        8       9       10   11   12
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "bank", "##s", "##ing", "cafe", "café", "[", "]", "pad"]
assert VOCABULARY[:5] == list(SPECIAL_TOKENS)


def ids(texts, lower_case=True, max_tokens=8, vocabulary=VOCABULARY):
    return Tokenizer(vocabulary, lower_case, max_tokens)(tf.constant(texts, tf.string)).to_list()


def test_words_split_into_their_longest_pieces_between_start_and_end():
    # bank = 5, bank+s = 5 6, bank+ing = 5 7, nothing = unknown 1
    assert ids(["bank banks", "banking nothing"]) == [[2, 5, 5, 6, 3], [2, 5, 7, 1, 3]]


def test_a_long_text_is_cut_to_the_limit_with_both_special_tokens():
    assert ids(["bank bank bank bank"], max_tokens=5) == [[2, 5, 5, 5, 3]]
    assert ids(["bank bank bank"], max_tokens=5) == [[2, 5, 5, 5, 3]]  # just fits
    assert ids(["banks"], max_tokens=3) == [[2, 5, 3]]  # within a word


@pytest.mark.parametrize("blank", ["", " ", "\n\t\u00a0"])
def test_a_blank_text_is_start_and_end(blank):
    assert ids([blank, "bank"]) == [[2, 3], [2, 5, 3]]


def test_bytes_that_are_no_utf8_fail_neither_their_text_nor_its_neighbours():
    # each bad byte turns into U+FFFD, which is cleaned away or unknown; the words beside it stay
    broken, whole = ids([b"bank \xff\xfe bank", b"banks"])
    assert [token for token in broken if token != 1] == [2, 5, 5, 3]
    assert whole == [2, 5, 6, 3]


def test_lower_casing_strips_accents():
    assert ids(["Café CAFÉ cafe\u0301 BANK"]) == [[2, 8, 8, 8, 5, 3]]


def test_without_lower_casing_case_and_accents_count():
    assert ids(["café cafe Cafe BANK"], lower_case=False) == [[2, 9, 8, 1, 1, 3]]


def test_a_special_token_spelt_out_in_a_text_is_plain_text():
    # pooling takes the id of [PAD] for padding, so that no text may contain it
    assert ids(["[PAD]"]) == [[2, 10, 12, 11, 3]]


def test_no_texts_give_no_rows():
    assert ids([]) == []


def test_ids_are_int32_and_the_same_inside_a_graph():
    tokenizer = Tokenizer(VOCABULARY, True, 8)
    graph = tf.function(tokenizer.__call__, input_signature=[tf.TensorSpec([None], tf.string)])
    found = graph(tf.constant(["banks", "", "cafe"]))
    assert found.dtype == tf.int32
    assert found.to_list() == ids(["banks", "", "cafe"])


def test_padding_uses_the_id_of_the_padding_token():
    moved = [*VOCABULARY[1:], "[PAD]"]  # every id is one less, and [PAD] is 12
    tokenizer = Tokenizer(moved, True, 8)
    assert tokenizer.pad_id == 12
    padded = tokenizer.pad(tokenizer(tf.constant(["banks", ""])))
    assert padded.numpy().tolist() == [[1, 4, 5, 2], [1, 2, 12, 12]]


@pytest.mark.parametrize("token", SPECIAL_TOKENS)
def test_a_vocabulary_without_a_special_token_is_refused(token):
    with pytest.raises(EncoderError) as refused:
        Tokenizer([word for word in VOCABULARY if word != token], True, 8)
    assert token in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_learnt_vocabulary_spells_its_own_texts():
    texts = ["Banks lend money", "banking in Peru", "money in banks"]
    vocabulary = learn_vocabulary(texts)
    assert vocabulary[:5] == list(SPECIAL_TOKENS)
    assert len(set(vocabulary)) == len(vocabulary)
    assert not [word for word in vocabulary[5:] if word != word.lower()]
    unknown = vocabulary.index("[UNK]")
    assert not [row for row in ids(texts, vocabulary=vocabulary, max_tokens=64) if unknown in row]
    assert unknown in ids(["wörld!"], vocabulary=vocabulary)[0]
