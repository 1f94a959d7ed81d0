"""The sentence encoder: one body, masked mean pooling, an optional projection."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import keras
import numpy as np
import tensorflow as tf

from model.contract import BFLOAT16, FLOAT32, fingerprint
from model.errors import EncoderError
from model.network.sources import Source, load_source
from model.network.tokenizer import Tokenizer

TOKENS_PER_BATCH = 8192  # about 250 MB of activations for a 384-wide body, and still wide enough for two cores


class Encoder(keras.layers.Layer):
    """Token ids int32 [B, T] -> vectors float32 [B, D], not normalised."""

    def __init__(self, source: Source, max_tokens: int | None = None, projection: int | None = None):
        super().__init__(name="encoder")
        max_tokens = source.max_tokens if max_tokens is None else max_tokens
        if not 3 <= max_tokens <= source.position_limit:
            raise EncoderError(f"max_tokens is {max_tokens}; this encoder takes 3 to {source.position_limit}")
        self.source = source
        self.tokenizer = Tokenizer(source.vocabulary, source.lower_case, max_tokens)
        self.body = source.body
        self.projection = None
        hidden = self.body(_body_inputs(tf.zeros([1, 3], tf.int32), tf.ones([1, 3], tf.bool))).shape[-1]
        if projection:
            # Starting at the identity keeps the pretrained space where the sizes agree.
            start = "identity" if projection == hidden else "orthogonal"
            self.projection = keras.layers.Dense(
                projection, use_bias=False, kernel_initializer=start, name="projection"
            )
            self.projection.build((None, hidden))
        self.hidden = hidden
        self.dimension = projection or hidden
        self.precision = FLOAT32
        self.built = True

    def multiply_in_bfloat16(self) -> None:
        """The matrices of the body alone: norms, attention's weights and what is added up between layers stay in
        float32, which keeps vectors nearer to what they were than bfloat16 throughout would.

        Before the first text is encoded: graphs that are traced already stay as they are.
        """
        products = [
            layer
            for layer in self.body._flatten_layers()
            if isinstance(layer, keras.layers.Dense | keras.layers.EinsumDense)
        ]
        if not products:
            raise EncoderError("this encoder keeps its matrices to itself; only float32 can be had of it")
        for layer in products:
            layer.dtype_policy = keras.DTypePolicy("mixed_bfloat16")
        self.precision = BFLOAT16

    def call(self, token_ids, training=False):
        pooled = self.pool(token_ids, training=training)
        return self.project(pooled)

    def pool(self, token_ids, training=False):
        """[B, T] -> [B, H]: the mean over real tokens; padding must not shrink it."""
        real = tf.not_equal(token_ids, self.tokenizer.pad_id)  # [B, T]
        states = self.body(_body_inputs(token_ids, real), training=training)
        weight = tf.cast(real, states.dtype)[:, :, tf.newaxis]  # [B, T, 1]
        return tf.reduce_sum(states * weight, axis=1) / tf.maximum(tf.reduce_sum(weight, axis=1), 1.0)

    def project(self, pooled):
        return self.projection(pooled) if self.projection else pooled

    def tokenize(self, texts: Sequence[str], chunk: int = 4096) -> list[np.ndarray]:
        """Token ids of each text, int32 [t]."""
        ids: list[np.ndarray] = []
        for start in range(0, len(texts), chunk):
            # JSON can spell half a surrogate pair, which is no UTF-8; like bad bytes, it must not fail the others.
            some = [text.encode("utf-8", "replace") for text in texts[start : start + chunk]]
            ragged = self.tokenizer(tf.constant(some, tf.string))
            ids += np.split(ragged.flat_values.numpy(), ragged.row_splits.numpy()[1:-1])
        return ids

    def encode(
        self, texts: Sequence[str], advance: Callable[[int], object] = lambda done: None, project: bool = True
    ) -> np.ndarray:
        """Unit vectors float32 [n, D], each distinct text encoded once; without `project`, pooled ones as they are."""
        distinct = {text: position for position, text in enumerate(dict.fromkeys(texts))}
        tokens = self.tokenize(list(distinct))
        vectors = np.zeros((len(distinct), self.dimension if project else self.hidden), np.float32)
        for rows in length_batches([len(ids) for ids in tokens]):
            vectors[rows] = self._run(project)(self.padded([tokens[row] for row in rows])).numpy()
            advance(len(rows))
        return vectors[[distinct[text] for text in texts]] if len(texts) else vectors

    def padded(self, tokens: Sequence[np.ndarray]) -> np.ndarray:
        """Ids [t_i] each -> int32 [n, longest]."""
        batch = np.full((len(tokens), max(map(len, tokens), default=1)), self.tokenizer.pad_id, np.int32)
        for row, ids in enumerate(tokens):
            batch[row, : len(ids)] = ids
        return batch

    def _run(self, project: bool):
        name = "_compiled_vectors" if project else "_compiled_pooled"
        if not hasattr(self, name):
            signature = [tf.TensorSpec([None, None], tf.int32)]
            function = (lambda ids: tf.math.l2_normalize(self(ids), axis=-1)) if project else self.pool
            setattr(self, name, tf.function(function, input_signature=signature))
        return getattr(self, name)

    def fingerprint(self, text_recipe: str) -> str:
        weights = (np.ascontiguousarray(variable.numpy()).tobytes() for variable in self.weights)
        settings = {
            "text_recipe": text_recipe,
            "lower_case": self.tokenizer.lower_case,
            "max_tokens": self.tokenizer.max_tokens,
        }
        if self.precision != FLOAT32:  # models that were exported before there was a choice keep theirs
            settings["precision"] = self.precision
        return fingerprint(weights, self.tokenizer.vocabulary, settings)


def load_encoder(spec: str, max_tokens: int | None = None, projection: int | None = None, texts: Sequence[str] = ()):
    return Encoder(load_source(spec, texts), max_tokens, projection)


def length_batches(lengths: Sequence[int], tokens_per_batch: int = TOKENS_PER_BATCH) -> list[np.ndarray]:
    """Row numbers, longest first, cut so that rows x longest stays within the token budget."""
    batches, start = [], 0
    order = np.argsort(-np.asarray(lengths), kind="stable")
    while start < len(order):
        rows = max(1, tokens_per_batch // max(1, lengths[order[start]]))
        batches.append(order[start : start + rows])
        start += rows
    return batches


def _body_inputs(token_ids: tf.Tensor, real: tf.Tensor) -> dict[str, tf.Tensor]:
    return {
        "token_ids": token_ids,
        "segment_ids": tf.zeros_like(token_ids),
        "padding_mask": tf.cast(real, tf.int32),
    }
