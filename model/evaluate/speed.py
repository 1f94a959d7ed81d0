"""How fast two precisions of one encoder are on this CPU, each the way the embedded server runs it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np
import tensorflow as tf

from model.contract import FLOAT32
from model.network.encoder import Encoder

TEXTS, TOKENS = 32, 128  # a batch of ordinary descriptions
ROUNDS = 5
FEWEST_SECONDS = 0.2  # of one measurement: a small encoder is run several times


@dataclass(frozen=True)
class Speeds:
    """Texts a second, medians of rounds that alternate."""

    precision: str
    texts: float
    float32_texts: float

    @property
    def ratio(self) -> float:
        return self.texts / self.float32_texts

    def facts(self) -> dict:
        return {**asdict(self), "ratio": self.ratio}

    def __str__(self) -> str:
        told = (
            f"{self.precision} encodes {self.ratio:.2f} x as many texts a second as float32 on this CPU "
            f"({self.texts:.0f} against {self.float32_texts:.0f})"
        )
        return told if self.ratio >= 1 else f"{told}: export float32 for a CPU like this one"


def compare(coarse: Encoder, exact: Encoder, rounds: int = ROUNDS) -> Speeds:
    """`exact` in float32 against the other; both of the same source."""
    longest = min(TOKENS, exact.tokenizer.max_tokens)
    generator = np.random.default_rng(0)
    ids = tf.constant(generator.integers(1, len(exact.tokenizer.vocabulary), [TEXTS, longest]), tf.int32)
    runs = [_traced(encoder, ids) for encoder in (coarse, exact)]
    seconds: list[list[float]] = [[], []]
    for _ in range(rounds):
        for run, taken in zip(runs, seconds, strict=True):
            taken.append(_seconds(run, ids))
    texts = [TEXTS / statistics.median(taken) for taken in seconds]
    return Speeds(coarse.precision, *texts)


def _traced(encoder: Encoder, ids: tf.Tensor) -> Callable:
    """The server compiles float32; what XLA would multiply as float32 again, it leaves to TensorFlow."""

    def vectors(ids):
        return tf.math.l2_normalize(encoder(ids), axis=-1)

    signature = [tf.TensorSpec([None, None], tf.int32)]
    if encoder.precision == FLOAT32:
        compiled = tf.function(vectors, input_signature=signature, jit_compile=True)
        try:
            compiled(ids)
            return compiled
        except tf.errors.OpError:
            pass  # not every encoder can be compiled
    plain = tf.function(vectors, input_signature=signature)
    plain(ids)
    return plain


def _seconds(run: Callable, ids: tf.Tensor) -> float:
    """Of one call, the mean of as many as make the clock worth reading."""
    calls, start = 0, time.perf_counter()
    while (passed := time.perf_counter() - start) < FEWEST_SECONDS or not calls:
        run(ids).numpy()
        calls += 1
    return passed / calls
