"""One step of training: vectors of a batch's distinct texts, the three terms, the update."""

from __future__ import annotations

import keras
import tensorflow as tf

from model.data.pairs import Pairs
from model.data.sampling import LENGTH_GROUPS
from model.network.saved import PauseModel
from model.training import losses
from model.training.config import TrainConfig
from model.training.schedules import WarmUp, anneal


class TrainingStep:
    """Compiled once; called with a batch's arrays and the global step, answers with each term's value."""

    def __init__(
        self, model: PauseModel, pairs: Pairs, priors, total: int, config: TrainConfig, close: int | None, pooled
    ):
        """`pooled` [texts, H]: the frozen encoder's vectors, or None where the encoder learns too."""
        self.model, self.config, self.total, self.close, self.pooled = model, config, total, close, pooled
        if model.head is None:
            raise ValueError("a model without a head cannot be trained")
        self.head = model.head
        self.priors = tf.constant(priors, tf.float32)
        self.supervised = _supervised_term(pairs)
        encoder = model.encoder
        if pooled is None:
            learning = list(encoder.trainable_variables)
        else:
            learning = list(encoder.projection.trainable_variables) if encoder.projection else []
        self.variables = learning + list(self.head.trainable_variables)
        self.optimizer = keras.optimizers.Adam(WarmUp(config.rate, total, config.warm_up))
        self.optimizer.build(self.variables)
        classes = len(pairs.names)
        self._run = tf.function(
            self._update,
            input_signature=[
                [tf.TensorSpec([None, None] if pooled is None else [None], tf.int32)] * LENGTH_GROUPS,
                tf.TensorSpec([None], tf.int32),
                tf.TensorSpec([None], tf.int32),
                tf.TensorSpec([None, classes], tf.float32),
                tf.TensorSpec([None], tf.bool),
                tf.TensorSpec([None, None], tf.bool),
                tf.TensorSpec([], tf.float32),
            ],
        )

    def __call__(self, groups, left, right, labels, labelled, known, step: int) -> dict[str, float]:
        terms = self._run(groups, left, right, labels, labelled, known, tf.constant(step, tf.float32))
        return {name: float(value) for name, value in terms.items()}

    @property
    def state(self) -> list:
        """All that decides how training goes on: what is learnt, the optimizer's memory, the seeds of dropout."""
        everything = self.model.encoder.variables + self.head.variables
        seeds = [variable for variable in everything if not variable.trainable]
        return self.variables + list(self.optimizer.variables) + seeds

    def _update(self, groups, left, right, labels, labelled, known, step):
        with tf.GradientTape() as tape:
            terms = self._terms(groups, left, right, labels, labelled, known)
            weight = anneal(step, self.total, self.config.alpha)
            loss = terms["supervised"] + weight * terms["pu"] + self.config.contrastive * terms["contrastive"]
        self.optimizer.apply(tape.gradient(loss, self.variables), self.variables)
        return {"loss": loss, **terms, "anneal": weight}

    def _terms(self, groups, left, right, labels, labelled, known):
        vectors = self._vectors(groups)
        u, v = tf.gather(vectors, left), tf.gather(vectors, right)  # [B, D]
        logits = self.head(u, v)
        all_labels, all_labelled = labels, labelled
        for _ in range(self.config.augment):
            # A dropout view: the labelled pairs once more, seen through other dropout masks.
            view = self._vectors(groups)
            rows = tf.where(labelled)[:, 0]
            ends = (tf.gather(view, tf.gather(side, rows)) for side in (left, right))
            logits = tf.concat([logits, self.head(*ends, training=True)], axis=0)
            all_labels = tf.concat([all_labels, tf.gather(labels, rows)], axis=0)
            all_labelled = tf.concat([all_labelled, tf.gather(labelled, rows)], axis=0)
        return {
            "supervised": self.supervised(
                tf.boolean_mask(logits, all_labelled), tf.boolean_mask(all_labels, all_labelled)
            ),
            "pu": losses.pu_loss(logits, all_labels, all_labelled, self.priors),
            "contrastive": self._contrastive(u, v, labels, known),
        }

    def _contrastive(self, u, v, labels, known):
        if self.close is None:
            return tf.constant(0.0)
        close = labels[:, self.close] > 0
        return losses.contrastive(tf.boolean_mask(u, close), tf.boolean_mask(v, close), known, self.config.temperature)

    def _vectors(self, groups):
        """Texts of each length group -> [distinct, D], in the order of the groups."""
        if self.pooled is not None:
            return self.model.encoder.project(tf.gather(self.pooled, tf.concat(groups, axis=0)))
        return tf.concat([self.model.encoder(ids, training=True) for ids in groups], axis=0)


def _supervised_term(pairs: Pairs):
    if pairs.multi_label or pairs.has_negatives:
        return losses.binary_cross_entropy
    if len(pairs.names) == 1:
        return lambda logits, labels: tf.constant(0.0)  # one class without negatives: only the PU term can learn
    return losses.cross_entropy
