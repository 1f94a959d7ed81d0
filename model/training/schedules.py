"""Schedules over a run: the weight of the annealed terms, and the learning rate."""

import keras
import tensorflow as tf


def anneal(step, total, alpha):
    """(step / total) ** alpha, at most 1; `step` (number or tensor) counts over the whole run, not within an epoch."""
    if isinstance(step, (int, float)):
        return min(step / total, 1.0) ** alpha
    return tf.minimum(tf.cast(step, tf.float32) / tf.cast(total, tf.float32), 1.0) ** alpha


class WarmUp(keras.optimizers.schedules.LearningRateSchedule):
    """Linear from 0 to `peak` over the first `share` of `total` steps, then constant."""

    def __init__(self, peak, total, share=0.1):
        self.peak = peak
        self.total = total
        self.share = share
        self.warm_steps = max(1, round(share * total))

    def __call__(self, step):
        # step + 1: the optimizer's first step has index 0, and a step at learning rate 0 would be a batch lost.
        reached = (tf.cast(step, tf.float32) + 1.0) / self.warm_steps
        return self.peak * tf.minimum(reached, 1.0)

    def get_config(self):
        return {"peak": self.peak, "total": self.total, "share": self.share}
