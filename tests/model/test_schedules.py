import keras
import pytest
import tensorflow as tf

from model.training.schedules import WarmUp, anneal

EPOCH = 50
TOTAL = 2 * EPOCH  # a run of two epochs


@pytest.mark.parametrize("kind", [int, float, tf.constant, lambda step: tf.Variable(step, dtype=tf.int64)])
@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (0, 0.0),
        (25, 0.015625),  # (1/4)^3
        (EPOCH, 0.125),  # (1/2)^3
        (TOTAL, 1.0),
        (TOTAL + 1, 1.0),  # clipped: a step too many must not weigh more
    ],
)
def test_weight_is_the_cube_of_the_share_of_the_run(kind, step, expected):
    assert float(anneal(kind(step), TOTAL, 3)) == pytest.approx(expected)


def test_weight_does_not_restart_with_an_epoch():
    # (49/100)^3 = 0.117649, then (1/2)^3 = 0.125, then (51/100)^3 = 0.132651
    around = [anneal(step, TOTAL, 3) for step in (EPOCH - 1, EPOCH, EPOCH + 1)]
    assert around == pytest.approx([0.117649, 0.125, 0.132651])


def test_alpha_sets_the_speed():
    assert anneal(EPOCH, TOTAL, 2) == pytest.approx(0.25)  # (1/2)^2


def test_weight_follows_the_optimizer_inside_a_graph():
    optimizer = keras.optimizers.SGD()
    optimizer.build([])

    @tf.function
    def weight():
        return anneal(optimizer.iterations, TOTAL, 3)

    assert weight() == 0
    optimizer.iterations.assign(EPOCH)
    assert float(weight()) == pytest.approx(0.125)


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (0, 0.2),  # 2.0 * 1/10: the first step already learns
        (4, 1.0),  # 2.0 * 5/10
        (9, 2.0),  # the last of the 10 % of 100 steps
        (10, 2.0),
        (99, 2.0),
        (1000, 2.0),
    ],
)
def test_warm_up_rises_linearly_then_stays(step, expected):
    assert float(WarmUp(peak=2.0, total=100)(step)) == pytest.approx(expected)


def test_share_sets_the_length_of_the_warm_up():
    rate = WarmUp(peak=1.0, total=100, share=0.5)
    assert float(rate(24)) == pytest.approx(0.5)  # 25/50
    assert float(rate(49)) == pytest.approx(1.0)


def test_share_is_not_lost_to_rounding():
    assert 0.29 * 100 < 29  # 28.999999999999996
    assert WarmUp(peak=1.0, total=100, share=0.29).warm_steps == 29


@pytest.mark.parametrize(("total", "share"), [(3, 0.1), (1, 0.1), (100, 0.0)])
def test_run_too_short_to_warm_up_starts_at_the_peak(total, share):
    assert float(WarmUp(peak=2.0, total=total, share=share)(0)) == pytest.approx(2.0)


def test_optimizer_steps_at_the_warmed_rate():
    # SGD with gradient 1: the first step moves by 1/2 * 0.1, the second and third by 0.1: 0.25 in all
    weight = keras.Variable(0.0)
    optimizer = keras.optimizers.SGD(WarmUp(peak=0.1, total=20))
    for expected in (-0.05, -0.15, -0.25):
        optimizer.apply([tf.constant(1.0)], [weight])
        assert float(weight) == pytest.approx(expected)


def test_config_makes_the_same_warm_up():
    rate = WarmUp.from_config(WarmUp(peak=2.0, total=40, share=0.25).get_config())
    assert (rate.peak, rate.total, rate.share, rate.warm_steps) == (2.0, 40, 0.25, 10)
