"""The head that compares two vectors: [u, v, |u-v|, u*v] -> 128 ELU -> one logit a class."""

from __future__ import annotations

import keras
import tensorflow as tf

WIDTH = 128
DROPOUT = 0.1  # of the features of a dropout view, where the encoder itself is frozen and has no dropout to offer


def features(left: tf.Tensor, right: tf.Tensor) -> tf.Tensor:
    """[B, D], [B, D] -> [B, 4 D]."""
    return tf.concat([left, right, tf.abs(left - right), left * right], axis=-1)


class PairHead(keras.layers.Layer):
    """Vectors [B, D] and [B, D] -> logits [B, C]."""

    def __init__(self, dimension: int, classes: int):
        super().__init__(name="head")
        self.dropout = keras.layers.Dropout(DROPOUT)
        self.hidden = keras.layers.Dense(WIDTH, activation="elu", name="hidden")
        self.logits = keras.layers.Dense(classes, name="logits")
        self.hidden.build((None, 4 * dimension))
        self.logits.build((None, WIDTH))
        self.built = True

    def call(self, left, right, training=False):
        return self.logits(self.hidden(self.dropout(features(left, right), training=training)))
