import time

import pytest
import tensorflow as tf

from model.contract import BFLOAT16, FLOAT32
from model.evaluate.speed import Speeds, compare


class Slow:
    """An encoder that takes so many seconds for a batch."""

    def __init__(self, precision, seconds):
        self.precision, self.tokenizer = precision, self
        self.vocabulary, self.max_tokens = ["[PAD]", "a", "b"], 16
        self._seconds = seconds

    def __call__(self, ids):
        def wait(ids):
            time.sleep(self._seconds)
            return tf.ones([len(ids), 4])

        return tf.ensure_shape(tf.py_function(wait, [ids], tf.float32), [None, 4])


def test_the_ratio_is_that_of_the_times_each_takes():
    speeds = compare(Slow(BFLOAT16, 0.2), Slow(FLOAT32, 0.1), rounds=3)
    assert speeds.ratio == pytest.approx(0.5, rel=0.2)
    assert speeds.float32_texts == pytest.approx(320, rel=0.2)  # 32 texts in 0.1 s; Python functions do not compile


def test_a_slower_precision_is_advised_against_and_a_faster_one_is_not():
    assert "0.53 x" in str(Speeds(BFLOAT16, 53, 100)) and "export float32" in str(Speeds(BFLOAT16, 53, 100))
    assert "1.24 x" in str(Speeds(BFLOAT16, 124, 100)) and "export float32" not in str(Speeds(BFLOAT16, 124, 100))
