"""Text to token ids inside the graph, so that a served model takes plain strings."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf
import tensorflow_text as tf_text

from model.errors import EncoderError

PAD, UNKNOWN, START, END, MASK = SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


class Tokenizer(tf.Module):
    """Strings [n] -> WordPiece ids, ragged int32 [n, (t)] with start and end tokens, t <= max_tokens."""

    def __init__(self, vocabulary: Sequence[str], lower_case: bool, max_tokens: int):
        super().__init__()
        # The mask token is never used here, but Keras Hub saves no vocabulary without it: better said before training.
        missing = [token for token in SPECIAL_TOKENS if token not in vocabulary]
        if missing:
            raise EncoderError(f"the vocabulary lacks {', '.join(missing)}; a BERT WordPiece vocabulary is needed")
        self.vocabulary = tuple(vocabulary)
        self.lower_case = lower_case
        self.max_tokens = max_tokens
        self.pad_id, self.start_id, self.end_id = (self.vocabulary.index(token) for token in (PAD, START, END))
        self._word_piece = tf_text.FastBertTokenizer(
            vocab=list(self.vocabulary),
            token_out_type=tf.int32,
            lower_case_nfd_strip_accents=lower_case,
        )

    def __call__(self, texts: tf.Tensor) -> tf.RaggedTensor:
        # Bytes that are no UTF-8 must not fail the whole batch they came in.
        texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")
        pieces = self._word_piece.tokenize(texts)[:, : self.max_tokens - 2]
        edge = tf.ones_like(pieces.row_lengths())[:, tf.newaxis]
        start, end = (tf.cast(edge, tf.int32) * token for token in (self.start_id, self.end_id))
        return tf.concat([start, pieces, end], axis=1)

    def pad(self, ids: tf.RaggedTensor) -> tf.Tensor:
        """Ragged [n, (t)] -> dense [n, longest]."""
        return ids.to_tensor(default_value=self.pad_id)


def learn_vocabulary(texts: Sequence[str], size: int = 8000) -> list[str]:
    """A lower-cased WordPiece vocabulary of the given texts, for encoders that start from scratch."""
    from tensorflow_text.tools.wordpiece_vocab import bert_vocab_from_dataset as learner

    return learner.bert_vocab_from_dataset(
        tf.data.Dataset.from_tensor_slices(list(texts)).batch(1000),
        vocab_size=size,
        reserved_tokens=list(SPECIAL_TOKENS),
        bert_tokenizer_params={"lower_case": True},
    )
