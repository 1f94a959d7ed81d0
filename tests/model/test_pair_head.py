import math

import numpy as np
import pytest
import tensorflow as tf

from model.network.pair_head import WIDTH, PairHead, features

LEFT = tf.constant([[1.0, -2.0], [0.5, 0.0]])
RIGHT = tf.constant([[3.0, 4.0], [0.5, -1.0]])


def test_features_are_both_vectors_their_distance_and_their_product():
    # |1 - 3| = 2, |-2 - 4| = 6, 1 * 3 = 3, -2 * 4 = -8; |0.5 - 0.5| = 0, |0 + 1| = 1, 0.25, 0
    np.testing.assert_allclose(
        features(LEFT, RIGHT), [[1, -2, 3, 4, 2, 6, 3, -8], [0.5, 0, 0.5, -1, 0, 1, 0.25, 0]], rtol=1e-6
    )


def test_logits_are_one_a_class():
    assert PairHead(dimension=2, classes=3)(LEFT, RIGHT).shape == (2, 3)
    assert PairHead(dimension=2, classes=1)(LEFT[:0], RIGHT[:0]).shape == (0, 1)


def test_the_head_is_elu_then_linear():
    # features of 2 and 1 are 2, 1, 1, 2, their sum 6; one unit sums them, another takes the sum's negative:
    # elu(6) = 6 and elu(-6) = e^-6 - 1; class 0 adds both and 0.5, class 1 takes the second alone
    head = PairHead(dimension=1, classes=2)
    hidden = np.zeros([4, WIDTH], np.float32)
    hidden[:, 0], hidden[:, 1] = 1.0, -1.0
    logits = np.zeros([WIDTH, 2], np.float32)
    logits[0, 0] = logits[1, 0] = logits[1, 1] = 1.0
    head.hidden.kernel.assign(hidden)
    head.logits.kernel.assign(logits)
    head.logits.bias.assign([0.5, 0.0])
    negative = math.exp(-6) - 1
    found = head(tf.constant([[2.0]]), tf.constant([[1.0]]))
    np.testing.assert_allclose(found, [[6.5 + negative, negative]], rtol=1e-5)


def test_dropout_acts_in_training_only():
    head = PairHead(dimension=64, classes=1)
    left, right = np.random.default_rng(0).normal(size=[2, 8, 64]).astype(np.float32)
    still = head(left, right).numpy()
    np.testing.assert_array_equal(head(left, right), still)
    np.testing.assert_array_equal(head(left, right, training=False), still)
    views = [head(left, right, training=True).numpy() for _ in range(2)]
    assert np.abs(views[0] - still).max() > 1e-3
    assert np.abs(views[0] - views[1]).max() > 1e-3


@pytest.mark.parametrize(("dimension", "classes"), [(2, 1), (3, 4)])
def test_the_head_has_two_dense_layers(dimension, classes):
    shapes = [tuple(variable.shape) for variable in PairHead(dimension, classes).trainable_variables]
    assert shapes == [(4 * dimension, WIDTH), (WIDTH,), (WIDTH, classes), (classes,)]
