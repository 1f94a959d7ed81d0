"""The STS benchmark, fine-tuned (the paper's table 2): regression on the cosine, the mean over several seeds."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import keras
import numpy as np
import tensorflow as tf
from tqdm import tqdm

from model.evaluate.sts import ScoredPairs, cosines, spearman
from model.network.encoder import Encoder
from model.training.schedules import WarmUp

HIGHEST_SCORE = 5.0
WINDOW = 20  # batches whose rows are sorted by length together: wide enough to pad little, small enough to stay random


class Tuned(NamedTuple):
    """One seed's outcome: Spearman x 100 on test, after the epoch that was best on dev."""

    test: float
    dev: float
    epoch: int


def score(
    open_encoder: Callable[[], Encoder],
    splits: dict[str, ScoredPairs],
    seeds: int,
    epochs: int,
    batch_size: int,
    learning_rate: float,
) -> list[Tuned]:
    """Each seed starts from a freshly opened encoder; the seed decides the order of batches and the dropout."""
    outcomes = []
    for seed in range(seeds):
        keras.utils.set_random_seed(seed)
        encoder = open_encoder()
        total = epochs * len(splits["train"])
        with tqdm(total=total, unit="pair", desc=f"seed {seed + 1} of {seeds}", disable=None) as bar:
            outcomes.append(tune(encoder, splits, seed, epochs, batch_size, learning_rate, bar.update))
    return outcomes


def tune(
    encoder: Encoder,
    splits: dict[str, ScoredPairs],
    seed: int,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    advance: Callable[[int], object] = lambda done: None,
) -> Tuned:
    generator = np.random.default_rng(seed)
    batches = Batches(encoder, splits["train"], batch_size)
    step = RegressionStep(encoder, WarmUp(learning_rate, epochs * batches.count))
    best_dev, best_epoch, weights = float("-inf"), 0, []
    for epoch in range(1, epochs + 1):
        for rows in batches.epoch(generator):
            step(*batches.arrays(rows))
            advance(len(rows))
        dev = spearman(cosines(splits["dev"], encoder.encode), splits["dev"].scores)
        if dev > best_dev:
            best_dev, best_epoch = dev, epoch
            weights = [variable.numpy() for variable in encoder.trainable_variables]
    for variable, array in zip(encoder.trainable_variables, weights, strict=True):
        variable.assign(array)
    test = spearman(cosines(splits["test"], encoder.encode), splits["test"].scores)
    return Tuned(test, best_dev, best_epoch)


class Batches:
    """Training pairs as token ids, cut into batches of alike length."""

    def __init__(self, encoder: Encoder, pairs: ScoredPairs, batch_size: int):
        self.encoder, self.batch_size = encoder, batch_size
        place = {text: row for row, text in enumerate(dict.fromkeys([*pairs.left, *pairs.right]))}
        self.tokens = encoder.tokenize(list(place))
        self.ends = np.array([[place[text] for text in side] for side in (pairs.left, pairs.right)])  # [2, n]
        self.targets = (pairs.scores / HIGHEST_SCORE).astype(np.float32)
        lengths = np.array([len(ids) for ids in self.tokens])
        self.lengths = lengths[self.ends].max(axis=0)  # [n], the longer side of each pair
        self.count = -(-len(pairs) // batch_size)

    def epoch(self, generator: np.random.Generator) -> list[np.ndarray]:
        """Row numbers of each batch: shuffled, sorted by length within windows, the batches shuffled again."""
        rows = generator.permutation(len(self.targets))
        window = WINDOW * self.batch_size
        parts = [rows[start : start + window] for start in range(0, len(rows), window)]
        rows = np.concatenate([part[np.argsort(self.lengths[part], kind="stable")] for part in parts])
        batches = np.split(rows, range(self.batch_size, len(rows), self.batch_size))
        return [batches[position] for position in generator.permutation(len(batches))]

    def arrays(self, rows: np.ndarray) -> tuple[np.ndarray, ...]:
        """Token ids of the batch's distinct texts [n, T], where each side of a row is in them [B], targets [B]."""
        distinct, place = np.unique(self.ends[:, rows], return_inverse=True)
        left, right = place.reshape(2, -1).astype(np.int32)
        return self.encoder.padded([self.tokens[text] for text in distinct]), left, right, self.targets[rows]


class RegressionStep:
    """Mean squared error between the cosine and the target, and the update; compiled once."""

    def __init__(self, encoder: Encoder, learning_rate: keras.optimizers.schedules.LearningRateSchedule):
        self.encoder = encoder
        self.variables = list(encoder.trainable_variables)
        self.optimizer = keras.optimizers.Adam(learning_rate)
        self.optimizer.build(self.variables)
        shapes = [([None, None], tf.int32), ([None], tf.int32), ([None], tf.int32), ([None], tf.float32)]
        self._run = tf.function(self._update, input_signature=[tf.TensorSpec(*shape) for shape in shapes])

    def __call__(self, token_ids, left, right, targets) -> float:
        return float(self._run(token_ids, left, right, targets))

    def _update(self, token_ids, left, right, targets):
        with tf.GradientTape() as tape:
            vectors = tf.math.l2_normalize(self.encoder(token_ids, training=True), axis=-1)  # [n, D]
            cosine = tf.reduce_sum(tf.gather(vectors, left) * tf.gather(vectors, right), axis=-1)  # [B]
            loss = tf.reduce_mean(tf.square(cosine - targets))
        self.optimizer.apply(tape.gradient(loss, self.variables), self.variables)
        return loss
