"""The training loop: batches in, checkpoints and a loss curve out, the same result whether disturbed or not."""

from __future__ import annotations

import json
import sys
import time

import keras
import numpy as np
import tensorflow as tf
from tqdm import tqdm

from model.data.sampling import Batch, KnownPositives, assemble, epoch_rows
from model.evaluate.scoring import classifier_scores, space_scores
from model.network.encoder import Encoder
from model.network.pair_head import PairHead
from model.network.saved import PauseModel, save_model
from model.network.sources import load_source
from model.training import priors
from model.training.cache import cached
from model.training.config import TrainConfig
from model.training.prepare import TrainingData, sample_rows
from model.training.run import Run
from model.training.step import TrainingStep

PRIOR_ROWS = 1000  # pairs of each side that the prior is estimated from


def build_model(config: TrainConfig, data: TrainingData) -> PauseModel:
    keras.utils.set_random_seed(config.seed)
    tf.config.experimental.enable_op_determinism()  # the same seed gives the same result, disturbed or not
    encoder = Encoder(load_source(config.encoder, data.variants.texts), config.max_tokens, config.projection)
    return PauseModel(encoder, data.recipe, PairHead(encoder.dimension, len(data.pairs.names)), data.pairs.names)


class Trainer:
    """Trains one model on one set of data, step by step, and keeps the best epoch."""

    def __init__(self, model: PauseModel, data: TrainingData, config: TrainConfig, run: Run):
        self.model, self.data, self.config, self.run = model, data, config, run
        self.total = data.steps * config.epochs
        self.tokens = model.encoder.tokenize(data.variants.texts)
        self.lengths = np.array([len(ids) for ids in self.tokens])
        pooled = self._frozen_vectors() if config.frozen else None
        self.priors = self._class_priors()
        self.step = TrainingStep(
            model,
            data.pairs,
            self.priors,
            self.total,
            config,
            data.close,
            None if pooled is None else tf.constant(pooled),
        )
        self.known = None if data.close is None else KnownPositives(data.pairs, data.close)
        self.dev_pooled: np.ndarray | None = None
        self.best: float | None = None

    def train(self) -> dict:
        """Trains to the end, from the last saved state where there is one, and writes the model and its metrics."""
        self.run.start()
        start, began = self._resume(), time.monotonic()
        writer = tf.summary.create_file_writer(str(self.run.directory / "tensorboard"))
        rows_left = round(len(self.data.pairs) * self.config.epochs * (1 - start / self.total))
        with (
            self.run.history(up_to=start) as history,
            tqdm(total=rows_left, unit="pair", desc="training", file=sys.stderr, disable=None) as bar,
            writer.as_default(),
        ):
            for step, rows in self._plan(start):
                terms = self.feed(self.batch(step, rows), step)
                self._record(step, terms, history)
                bar.update(len(rows))
                bar.set_postfix(loss=f"{terms['loss']:.4f}", refresh=False)
                if step % self.data.steps == 0:
                    self._keep_if_best(step)
                if step % self.config.checkpoint_every == 0 or step == self.total:
                    self._checkpoint(step)
        return self._finish(rows_left / max(time.monotonic() - began, 1e-9))

    def _plan(self, start: int):
        """Steps from `start` on, numbered from 1 over all epochs, each with its rows."""
        for epoch in range(start // self.data.steps, self.config.epochs):
            batches = epoch_rows(self.data.pairs, self.config.batch_size, self.config.seed, epoch)
            for position, rows in enumerate(batches):
                step = epoch * self.data.steps + position + 1
                if step > start:
                    yield step, rows

    def batch(self, step: int, rows: np.ndarray) -> Batch:
        # Seeded by the step, so that a resumed run draws what the undisturbed one would have drawn.
        generator = np.random.default_rng([self.config.seed, step])
        return assemble(
            self.data.pairs,
            rows,
            self.data.variants,
            self.lengths,
            self.config.drop_fields,
            generator,
            self.known,
            self.data.close or 0,
        )

    def feed(self, batch: Batch, step: int) -> dict[str, float]:
        if self.config.frozen:
            groups = [group.astype(np.int32) for group in batch.groups]
        else:
            groups = [self.model.encoder.padded([self.tokens[text] for text in group]) for group in batch.groups]
        return self.step(groups, *batch[1:], step)

    def _record(self, step: int, terms: dict[str, float], history) -> None:
        row = {"step": step, **terms, "learning_rate": float(self.step.optimizer.learning_rate.numpy())}
        history.write(json.dumps(row) + "\n")
        for name, value in row.items():
            if name != "step":
                tf.summary.scalar(name, value, step=step)

    def _resume(self) -> int:
        found = self.run.load_state()
        if found is None:
            return 0
        arrays, progress = found
        for variable, array in zip(self.step.state, arrays, strict=True):
            variable.assign(array)
        self.best = progress["best"]
        print(f"going on after step {progress['step']} of {self.total}", file=sys.stderr)
        return progress["step"]

    def _checkpoint(self, step: int) -> None:
        self.run.save_state([variable.numpy() for variable in self.step.state], {"step": step, "best": self.best})

    def _keep_if_best(self, step: int) -> None:
        scores = self.dev_scores()
        if not scores:
            return
        for name, value in scores.items():
            tf.summary.scalar(f"dev/{name}", value, step=step)
        score = scores["auc"] if "auc" in scores and (self.data.close is not None or "accuracy" not in scores) else None
        score = scores["accuracy"] if score is None else score
        if self.best is None or score > self.best:
            self.best = score
            self.run.save_best([variable.numpy() for variable in self.step.variables])

    def dev_scores(self) -> dict[str, float]:
        dev, texts = self.data.dev, self.data.dev_variants
        if dev is None or texts is None:
            return {}
        if self.dev_pooled is None or not self.config.frozen:
            whole = texts.whole(np.arange(len(dev.items)))
            self.dev_pooled = self._encode([texts.texts[text] for text in whole], "dev set")
        vectors = np.asarray(self.model.encoder.project(self.dev_pooled))
        left, right = vectors[dev.left], vectors[dev.right]
        close = self.data.close if self.data.close is not None else (0 if len(dev.names) == 1 else None)
        space = {} if close is None else space_scores(dev, close, left, right)
        return classifier_scores(self.step.head, dev, left, right) | space

    def _class_priors(self) -> np.ndarray:
        pairs, wanted = self.data.pairs, self.data.prior
        if wanted == "labels":
            return np.clip(priors.from_labels(pairs.labels[pairs.labelled]), 1e-3, 1 - 1e-3)
        if wanted != "estimate":
            return priors.parse(wanted, pairs.names)
        unlabelled = np.flatnonzero(~pairs.labelled)
        sides = [np.flatnonzero(pairs.labels[:, number] > 0) for number in range(len(pairs.names))] + [unlabelled]
        *positive, unlabelled_features = self._pair_features(
            [sample_rows(s, PRIOR_ROWS, self.config.seed) for s in sides]
        )
        return np.array([priors.estimate(some, unlabelled_features, self.config.seed) for some in positive])

    def _pair_features(self, sides: list[np.ndarray]) -> list[np.ndarray]:
        """Rows of each side -> [n, 2 H]: what two texts share and where they differ, direction left aside."""
        pairs, texts = self.data.pairs, self.data.variants
        rows = np.concatenate(sides)
        ends = [[texts.texts[text] for text in texts.whole(end[rows])] for end in (pairs.left, pairs.right)]
        vectors = self._encode(ends[0] + ends[1], "estimating priors")
        left, right = np.split(vectors, 2)
        return np.split(np.hstack([np.abs(left - right), left * right]), np.cumsum([len(s) for s in sides])[:-1])

    def _frozen_vectors(self) -> np.ndarray:
        texts = self.data.variants.texts
        # Before training, so it names the frozen body; hashing all weights takes a while, and is for the cache alone.
        fingerprint = self.model.encoder.fingerprint("") if self.config.cache else ""
        return cached(self.config.cache, fingerprint, texts, lambda: self._encode(texts, "encoding"))

    def _encode(self, texts, what: str) -> np.ndarray:
        with tqdm(total=len(set(texts)), unit="text", desc=what, file=sys.stderr, disable=None, leave=False) as bar:
            return self.model.encoder.encode(texts, bar.update, project=False)

    def _finish(self, speed: float) -> dict:
        best = self.run.load_best()
        if best is not None:
            for variable, array in zip(self.step.variables, best, strict=True):
                variable.assign(array)
        save_model(self.model, self.run.directory)
        metrics = {
            "dev": self.dev_scores(),
            "priors": dict(zip(self.model.names, map(float, self.priors), strict=True)),
            "steps": self.total,
            "pairs": len(self.data.pairs),
            "labelled": int(self.data.pairs.labelled.sum()),
            "fingerprint": self.model.contract.fingerprint,
            "pairs_per_second": round(speed, 2),
            "data": self.data.hashes,
        }
        self.run.finish(metrics)
        return metrics
