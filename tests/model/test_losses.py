"""Every branch of every loss, value and gradient, against numbers worked by hand.

sigmoid(ln 3) = 3/4 and sigmoid(0) = 1/2; their slopes s * (1 - s) are 3/16 = 0.1875 and 1/4.
"""

import math

import numpy as np
import pytest
import tensorflow as tf

from model.training import losses

LN2, LN3, LN4 = math.log(2), math.log(3), math.log(4)


def value_and_gradients(loss, *inputs):
    inputs = [tf.constant(x, tf.float32) for x in inputs]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        value = loss(*inputs)
    assert value.shape == ()
    return value.numpy(), [g.numpy() for g in tape.gradient(value, inputs, unconnected_gradients="zero")]


def empty(columns):
    return np.zeros([0, columns], np.float32)


# cross_entropy


def test_cross_entropy_divides_by_classes_and_rows():
    # softmax(ln 3, 0) = 3/4, 1/4 and softmax(0, 0) = 1/2, 1/2; -(ln 3/4 + ln 1/2) / (2 classes * 2 rows) = ln(8/3) / 4
    # gradient: (softmax - label) / 4
    value, [gradient] = value_and_gradients(
        lambda f: losses.cross_entropy(f, [[1, 0], [0, 1]]), [[LN3, 0.0], [0.0, 0.0]]
    )
    assert value == pytest.approx(math.log(8 / 3) / 4)
    np.testing.assert_allclose(gradient, [[-0.0625, 0.0625], [0.125, -0.125]], atol=1e-7)


def test_cross_entropy_counts_three_classes_as_three():
    # softmax(0, 0, 0) = 1/3 each: ln 3 / (3 classes * 1 row); gradient (1/3 - label) / 3
    value, [gradient] = value_and_gradients(lambda f: losses.cross_entropy(f, [[0, 1, 0]]), [[0.0, 0.0, 0.0]])
    assert value == pytest.approx(LN3 / 3)
    np.testing.assert_allclose(gradient, [[1 / 9, -2 / 9, 1 / 9]], atol=1e-7)


def test_cross_entropy_is_finite_where_softmax_underflows():
    # log softmax(0 against 1000) = -1000, over 2 classes; softmax = 0, 1: gradient (0 - 1, 1 - 0) / 2
    value, [gradient] = value_and_gradients(lambda f: losses.cross_entropy(f, [[1, 0]]), [[0.0, 1000.0]])
    assert value == pytest.approx(500)
    np.testing.assert_allclose(gradient, [[-0.5, 0.5]])


# binary_cross_entropy


def test_binary_cross_entropy_counts_both_sides():
    # label 1 at 3/4: ln 4/3; label 0 at 1/2: ln 2; over 2 classes: ln(8/3) / 2. Gradient: (sigmoid - label) / 2
    value, [gradient] = value_and_gradients(lambda f: losses.binary_cross_entropy(f, [[1, 0]]), [[LN3, 0.0]])
    assert value == pytest.approx(math.log(8 / 3) / 2)
    np.testing.assert_allclose(gradient, [[-0.125, 0.25]], atol=1e-7)


def test_binary_cross_entropy_pushes_a_wrong_class_down():
    # eq. 2 as printed charges nothing here: label 0 at 3/4 costs -ln 1/4 = ln 4, one class, one row; gradient 3/4
    value, [gradient] = value_and_gradients(lambda f: losses.binary_cross_entropy(f, [[0]]), [[LN3]])
    assert value == pytest.approx(LN4)
    np.testing.assert_allclose(gradient, [[0.75]], atol=1e-7)


def test_binary_cross_entropy_takes_several_labels_a_row():
    # row 0, labels 1 and 1 at 3/4 and 1/2: ln 4/3 + ln 2; row 1, no label, at 1/2 and 1/4: ln 2 + ln 4/3; over 4 cells
    value, [gradient] = value_and_gradients(
        lambda f: losses.binary_cross_entropy(f, [[1, 1], [0, 0]]), [[LN3, 0.0], [0.0, -LN3]]
    )
    assert value == pytest.approx(math.log(8 / 3) / 2)
    np.testing.assert_allclose(gradient, [[-0.0625, -0.125], [0.125, 0.0625]], atol=1e-7)


@pytest.mark.parametrize("loss", [losses.cross_entropy, losses.binary_cross_entropy])
def test_no_labelled_rows_cost_nothing_and_move_no_weight(loss):
    # The gradient is taken at the weights behind the logits: that of no logits at all could not show a NaN.
    value, [gradient] = value_and_gradients(lambda w: loss(tf.matmul(empty(3), w), empty(2)), np.ones([3, 2]))
    assert value == 0
    np.testing.assert_array_equal(gradient, np.zeros([3, 2]))


# nnpu_risk


def test_negative_risk_above_zero_adds_the_positive_risk():
    # R_p^+ = 1/4, R_p^- = 3/4, R_u^- = (1/2 + 3/4) / 2 = 0.625
    # negative risk 0.625 - 0.4 * 0.75 = 0.325; positive risk 0.4 * 0.25 = 0.1; sum 0.425
    # d/d positive: 0.4 * -0.1875 from each risk = -0.15; d/d unlabelled: 1/4 / 2 and 0.1875 / 2
    value, [positive, unlabelled] = value_and_gradients(
        lambda p, u: losses.nnpu_risk(p, u, prior=0.4), [LN3], [0.0, LN3]
    )
    assert value == pytest.approx(0.425)
    np.testing.assert_allclose(positive, [-0.15], atol=1e-7)
    np.testing.assert_allclose(unlabelled, [0.125, 0.09375], atol=1e-7)


def test_negative_risk_below_zero_flips_sign_and_drops_the_positive_risk():
    # negative risk 1/4 - 0.5 * 3/4 = -0.125, so the value is 0.5 * R_p^- - R_u^- = 0.125
    # d/d positive: 0.5 * 0.1875 = +0.09375 (no -0.5 * 0.1875 of the positive risk); d/d unlabelled: -0.1875
    value, [positive, unlabelled] = value_and_gradients(lambda p, u: losses.nnpu_risk(p, u, prior=0.5), [LN3], [-LN3])
    assert value == pytest.approx(0.125)
    np.testing.assert_allclose(positive, [0.09375], atol=1e-7)
    np.testing.assert_allclose(unlabelled, [-0.1875], atol=1e-7)


def test_negative_risk_of_exactly_zero_keeps_the_positive_risk():
    # R_u^- = (1/2 + 0) / 2 = 1/4 = 0.5 * R_p^- with nothing rounded; the value is 0.5 * R_p^+ = 0.25
    # d/d positive: 0.5 * -1/4 from each risk = -0.25; d/d unlabelled: +1/4 / 2 and 0
    value, [positive, unlabelled] = value_and_gradients(
        lambda p, u: losses.nnpu_risk(p, u, prior=0.5), [0.0], [0.0, -100.0]
    )
    assert value == 0.25
    np.testing.assert_allclose(positive, [-0.25], atol=1e-7)
    np.testing.assert_allclose(unlabelled, [0.125, 0.0], atol=1e-7)


def test_positives_are_averaged():
    # R_p^+ = (1/4 + 1/2) / 2 = 0.375, R_p^- = 0.625, R_u^- = 3/4; 0.4 * 0.375 + 0.75 - 0.4 * 0.625 = 0.15 + 0.5
    # d/d positive: twice 0.4 * -slope / 2; d/d unlabelled: the slope
    value, [positive, unlabelled] = value_and_gradients(
        lambda p, u: losses.nnpu_risk(p, u, prior=0.4), [LN3, 0.0], [LN3]
    )
    assert value == pytest.approx(0.65)
    np.testing.assert_allclose(positive, [-0.075, -0.1], atol=1e-7)
    np.testing.assert_allclose(unlabelled, [0.1875], atol=1e-7)


@pytest.mark.parametrize(("positive", "unlabelled"), [([], [0.0, 1.0]), ([0.0, 1.0], []), ([], [])])
def test_one_side_alone_has_no_risk(positive, unlabelled):
    value, gradients = value_and_gradients(lambda p, u: losses.nnpu_risk(p, u, prior=0.4), positive, unlabelled)
    assert value == 0
    np.testing.assert_array_equal(np.concatenate(gradients), np.zeros(len(positive) + len(unlabelled)))


# pu_loss


def test_pu_loss_is_the_mean_over_classes():
    # class 0: positive ln 3, unlabelled 0, prior 0.4: 1/2 - 0.4 * 3/4 = 0.2, plus 0.4 * 1/4: 0.3
    # class 1: positive ln 3, unlabelled -ln 3, prior 0.5: 1/4 - 0.5 * 3/4 = -0.125, flipped: 0.125
    # mean (0.3 + 0.125) / 2 = 0.2125; each class's gradients, as for nnpu_risk, halved
    value, [gradient] = value_and_gradients(
        lambda f: losses.pu_loss(f, [[1, 0], [0, 1], [0, 0]], np.array([True, True, False]), [0.4, 0.5]),
        [[LN3, 0.0], [0.0, LN3], [0.0, -LN3]],
    )
    assert value == pytest.approx(0.2125)
    np.testing.assert_allclose(gradient, [[-0.075, 0.0], [0.0, 0.046875], [0.125, -0.09375]], atol=1e-7)


def test_pu_loss_of_each_class_is_its_nnpu_risk():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=[12, 3]).astype(np.float32)
    labels = rng.integers(0, 2, size=[12, 3])
    labelled = np.arange(12) < 7
    priors = [0.2, 0.5, 0.9]
    assert labels[labelled].any(axis=0).all()
    risks = [
        losses.nnpu_risk(tf.constant(logits[labelled & (labels[:, c] == 1), c]), tf.constant(logits[~labelled, c]), p)
        for c, p in enumerate(priors)
    ]
    assert losses.pu_loss(tf.constant(logits), labels, labelled, priors).numpy() == pytest.approx(np.mean(risks))


def test_one_row_is_positive_of_two_classes():
    # class 0 as above, 0.3; class 1: positive 0, unlabelled 0, prior 0.5: 1/2 - 0.5 * 1/2 = 0.25, plus 0.5 * 1/2: 0.5
    # class 1, d/d positive: twice 0.5 * -1/4, halved: -0.125; d/d unlabelled: 1/4, halved
    value, [gradient] = value_and_gradients(
        lambda f: losses.pu_loss(f, [[1, 1], [0, 0]], np.array([True, False]), [0.4, 0.5]), [[LN3, 0.0], [0.0, 0.0]]
    )
    assert value == pytest.approx(0.4)
    np.testing.assert_allclose(gradient, [[-0.075, -0.125], [0.125, 0.125]], atol=1e-7)


def test_class_without_positives_contributes_nothing():
    # class 0 as above, 0.3, over 2 classes; class 1 moves neither the labelled nor the unlabelled row
    value, [gradient] = value_and_gradients(
        lambda f: losses.pu_loss(f, [[1, 0], [0, 0]], np.array([True, False]), [0.4, 0.5]), [[LN3, 0.0], [0.0, -LN3]]
    )
    assert value == pytest.approx(0.15)
    np.testing.assert_allclose(gradient, [[-0.075, 0.0], [0.125, 0.0]], atol=1e-7)


def test_labels_of_unlabelled_rows_are_ignored():
    # the same batch, its unlabelled row carrying a label of each class
    value, [gradient] = value_and_gradients(
        lambda f: losses.pu_loss(f, [[1, 0], [1, 1]], np.array([True, False]), [0.4, 0.5]), [[LN3, 0.0], [0.0, -LN3]]
    )
    assert value == pytest.approx(0.15)
    np.testing.assert_allclose(gradient, [[-0.075, 0.0], [0.125, 0.0]], atol=1e-7)


@pytest.mark.parametrize("labelled", [True, False])
def test_batch_of_one_kind_has_no_pu_loss(labelled):
    # all labelled: nothing unlabelled; none labelled: no class has positives
    value, [gradient] = value_and_gradients(
        lambda f: losses.pu_loss(f, [[1, 0], [0, 1]], np.full(2, labelled), [0.4, 0.5]), [[LN3, 0.0], [0.0, LN3]]
    )
    assert value == 0
    np.testing.assert_array_equal(gradient, np.zeros([2, 2]))


def test_pu_loss_is_finite_at_extreme_logits():
    # sigmoid(1000) = 1, sigmoid(-1000) = 0: R_p^+ = 1, R_p^- = 0, R_u^- = 1: 0.4 * 1 + 1; the slopes are 0
    value, [gradient] = value_and_gradients(
        lambda f: losses.pu_loss(f, [[1], [0]], np.array([True, False]), [0.4]), [[-1000.0], [1000.0]]
    )
    assert value == pytest.approx(1.4)
    np.testing.assert_array_equal(gradient, np.zeros([2, 1]))


def test_no_rows_have_no_pu_loss_and_move_no_weight():
    value, [gradient] = value_and_gradients(
        lambda w: losses.pu_loss(tf.matmul(empty(3), w), empty(2), np.zeros([0], bool), [0.4, 0.5]), np.ones([3, 2])
    )
    assert value == 0
    np.testing.assert_array_equal(gradient, np.zeros([3, 2]))


# contrastive: with temperature 1 / ln 3, e^similarity is 3 for equal axes and 1 for orthogonal ones

AXES = [[1.0, 0.0], [0.0, 1.0]]
TEMPERATURE = 1 / LN3
NONE_KNOWN = np.zeros([2, 2], bool)
FIRST_KNOWS_SECOND = np.array([[False, True], [False, False]])


def test_contrastive_without_known_pairs():
    # every row and column: -ln(3 / (3 + 1)) = ln 4/3
    # d/d similarity: (row softmax + column softmax - 2 on the diagonal) / (2 * 2 pairs): 1/8 beside the diagonal
    # cosine of left_0 and right_1 grows along right_1 (that with right_0 is at its peak): gradient ln 3 / 8 there
    value, [left, right] = value_and_gradients(
        lambda a, b: losses.contrastive(a, b, NONE_KNOWN, TEMPERATURE), AXES, AXES
    )
    assert value == pytest.approx(math.log(4 / 3))
    np.testing.assert_allclose(left, [[0, LN3 / 8], [LN3 / 8, 0]], atol=1e-6)
    np.testing.assert_allclose(right, [[0, LN3 / 8], [LN3 / 8, 0]], atol=1e-6)


def test_known_pair_leaves_its_row_and_its_column():
    # row 0 and column 1 have only their own pair left: ln 3/3 = 0; row 1 and column 0 stay: 2 * ln(4/3) / 4
    # left_0 and right_1 have no negative left: no gradient; left_1 and right_0 repel each other still
    value, [left, right] = value_and_gradients(
        lambda a, b: losses.contrastive(a, b, FIRST_KNOWS_SECOND, TEMPERATURE), AXES, AXES
    )
    assert value == pytest.approx(math.log(4 / 3) / 2)
    np.testing.assert_allclose(left, [[0, 0], [LN3 / 8, 0]], atol=1e-6)
    np.testing.assert_allclose(right, [[0, LN3 / 8], [0, 0]], atol=1e-6)


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        # e^similarity is 3, 3 in row 0 and 1, 1 in row 1
        # rows: ln 6/3 = ln 2 and ln 2/1 = ln 2; columns: ln 4/3 and ln 4/1
        (NONE_KNOWN, (2 * LN2 + math.log(4 / 3) + LN4) / 4),
        # rows: 0 and ln 2; columns: ln 4/3 and 0
        (FIRST_KNOWS_SECOND, (LN2 + math.log(4 / 3)) / 4),
    ],
)
def test_rows_and_columns_are_averaged(known, expected):
    left, right = tf.constant(AXES), tf.constant([[1.0, 0.0], [1.0, 0.0]])
    assert losses.contrastive(left, right, known, TEMPERATURE).numpy() == pytest.approx(expected)
    assert losses.contrastive(right, left, known.T, TEMPERATURE).numpy() == pytest.approx(expected)  # symmetric


def test_diagonal_is_never_masked():
    # as without known pairs (ln 4/3), and as with the one known pair beside the diagonal (half of it)
    for known, expected in ((NONE_KNOWN, math.log(4 / 3)), (FIRST_KNOWS_SECOND, math.log(4 / 3) / 2)):
        value, gradients = value_and_gradients(
            lambda a, b, known=known: losses.contrastive(a, b, known | np.eye(2, dtype=bool), TEMPERATURE), AXES, AXES
        )
        assert value == pytest.approx(expected)
        assert np.isfinite(gradients).all()


def test_everything_known_leaves_nothing_to_tell_apart():
    value, gradients = value_and_gradients(
        lambda a, b: losses.contrastive(a, b, np.ones([2, 2], bool), TEMPERATURE), AXES, AXES
    )
    assert value == pytest.approx(0, abs=1e-7)
    np.testing.assert_allclose(gradients, np.zeros([2, 2, 2]), atol=1e-7)


def test_length_of_a_vector_changes_no_value():
    # left_0 ten times as long, right_1 four times: the same angles, so ln 4/3; a tenth and a quarter of their gradients
    value, [left, right] = value_and_gradients(
        lambda a, b: losses.contrastive(a, b, NONE_KNOWN, TEMPERATURE),
        [[10.0, 0.0], [0.0, 1.0]],
        [[1.0, 0.0], [0.0, 4.0]],
    )
    assert value == pytest.approx(math.log(4 / 3))
    np.testing.assert_allclose(left, [[0, LN3 / 80], [LN3 / 8, 0]], atol=1e-6)
    np.testing.assert_allclose(right, [[0, LN3 / 8], [LN3 / 32, 0]], atol=1e-6)


def test_one_pair_has_no_negatives():
    value, gradients = value_and_gradients(
        lambda a, b: losses.contrastive(a, b, np.array([[False]]), 0.05), [[1.0, 0.0]], [[1.0, 1.0]]
    )
    assert value == pytest.approx(0, abs=1e-6)
    np.testing.assert_allclose(gradients, np.zeros([2, 1, 2]), atol=1e-6)


def test_no_pairs_cost_nothing_and_move_no_weight():
    value, [gradient] = value_and_gradients(
        lambda w: losses.contrastive(tf.matmul(empty(3), w), tf.matmul(empty(3), w), np.zeros([0, 0], bool), 0.05),
        np.ones([3, 2]),
    )
    assert value == 0
    np.testing.assert_array_equal(gradient, np.zeros([3, 2]))


# graphs

ROWS = tf.TensorSpec([None, 2])
FLAGS = tf.TensorSpec([None], tf.bool)
COLUMN = tf.TensorSpec([None])
GRID = tf.TensorSpec([None, None], tf.bool)
LOGITS = tf.constant([[LN3, 0.0], [0.0, LN3], [0.0, -LN3]])
ONE_HOT = tf.constant([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
LABELLED = tf.constant([True, True, False])

GRAPHS = {
    "cross_entropy": (losses.cross_entropy, [ROWS, ROWS], [LOGITS, ONE_HOT]),
    "binary_cross_entropy": (losses.binary_cross_entropy, [ROWS, ROWS], [LOGITS, ONE_HOT]),
    "nnpu_risk": (lambda p, u: losses.nnpu_risk(p, u, 0.4), [COLUMN, COLUMN], [LOGITS[:, 0], LOGITS[:, 1]]),
    "pu_loss": (lambda f, y, k: losses.pu_loss(f, y, k, [0.4, 0.5]), [ROWS, ROWS, FLAGS], [LOGITS, ONE_HOT, LABELLED]),
    "contrastive": (
        lambda a, b, k: losses.contrastive(a, b, k, TEMPERATURE),
        [ROWS, ROWS, GRID],
        [LOGITS, ONE_HOT, tf.constant([[False, True, False], [False, False, True], [False, False, False]])],
    ),
}


def with_gradient(loss):
    def run(logits, *rest):
        with tf.GradientTape() as tape:
            tape.watch(logits)
            value = loss(logits, *rest)
        return value, tape.gradient(value, logits)

    return run


@pytest.mark.parametrize(("loss", "signature", "inputs"), GRAPHS.values(), ids=GRAPHS)
def test_graph_of_unknown_batch_size_equals_eager(loss, signature, inputs):
    traces = []
    graph = tf.function(lambda *x: traces.append(1) or with_gradient(loss)(*x), input_signature=signature)
    value, gradient = with_gradient(loss)(*inputs)
    assert value > 0
    graph_value, graph_gradient = graph(*inputs)
    np.testing.assert_allclose(graph_value, value, rtol=1e-6)
    np.testing.assert_allclose(graph_gradient, gradient, atol=1e-7)

    nothing = [x[:0, :0] if spec is GRID else x[:0] for x, spec in zip(inputs, signature, strict=True)]
    assert graph(*nothing)[0] == 0
    assert len(traces) == 1


@pytest.mark.parametrize(("loss", "signature", "inputs"), GRAPHS.values(), ids=GRAPHS)
def test_xla_equals_eager(loss, signature, inputs):
    compiled = tf.function(with_gradient(loss), jit_compile=True)
    value, gradient = with_gradient(loss)(*inputs)
    compiled_value, compiled_gradient = compiled(*inputs)
    np.testing.assert_allclose(compiled_value, value, rtol=1e-5)
    np.testing.assert_allclose(compiled_gradient, gradient, atol=1e-6)
