import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from model.training import priors

NAMES = ["entailment", "neutral", "contradiction"]
ROWS = 3000


def mixture(share, distance, seed, rows=ROWS):
    """Positives and unlabelled rows of two Gaussians in 8 dimensions, and the share of positives really drawn."""
    rng = np.random.default_rng(seed)
    centre = np.full(8, distance / np.sqrt(8))
    is_positive = rng.random(rows) < share
    positive = rng.normal(size=[rows, 8]) + centre
    unlabelled = rng.normal(size=[rows, 8]) + centre * is_positive[:, None]
    return positive, unlabelled, is_positive.mean()


# from_labels


def test_class_frequencies_are_counted_over_rows():
    # 2, 1 and 1 of 4 rows
    frequencies = priors.from_labels(np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], np.float32))
    np.testing.assert_array_equal(frequencies, [0.5, 0.25, 0.25])
    assert frequencies.dtype == np.float64


def test_several_labels_a_row_each_count():
    np.testing.assert_array_equal(priors.from_labels(np.array([[1, 1], [0, 1]])), [0.5, 1.0])


def test_frequencies_of_no_rows_are_refused():
    with pytest.raises(ValueError, match="at least one labelled row, got none"):
        priors.from_labels(np.zeros([0, 3]))


# estimate


@pytest.mark.parametrize("share", [0.2, 0.5, 0.7])
@pytest.mark.parametrize("distance", [2.5, 3.0])
def test_share_of_an_overlapping_mixture_is_found(share, distance):
    positive, unlabelled, drawn = mixture(share, distance, seed=0)
    assert drawn == pytest.approx(share, abs=0.02)
    assert priors.estimate(positive, unlabelled, seed=0) == pytest.approx(share, abs=0.05)


def test_unit_of_a_feature_does_not_matter():
    positive, unlabelled, _ = mixture(0.5, 3.0, seed=1)
    unit = np.array([1, 1] + [1e-6] * 6)  # unstandardised, the ridge penalty would hide six of the eight features
    share = priors.estimate(positive, unlabelled, seed=0)
    assert priors.estimate(positive * unit, unlabelled * unit, seed=0) == pytest.approx(share, abs=1e-3)


def test_same_seed_gives_the_same_share():
    positive, unlabelled, _ = mixture(0.5, 2.5, seed=2, rows=300)
    assert priors.estimate(positive, unlabelled, seed=7) == priors.estimate(positive, unlabelled, seed=7)


def test_unlabelled_rows_without_positives_have_a_share_just_above_zero():
    positive, unlabelled, _ = mixture(0.0, 20.0, seed=3, rows=300)
    assert priors.estimate(positive, unlabelled, seed=0) == priors.MARGIN


def test_rows_that_cannot_be_told_apart_have_a_share_just_below_one():
    # one score for all, so q_p = q_u = 1
    assert priors.estimate(np.ones([20, 2]), np.ones([20, 2]), seed=0) == 1 - priors.MARGIN


@pytest.mark.parametrize("share", [0.2, 0.7])
def test_ten_rows_a_side_are_enough_to_answer(share):
    positive, unlabelled, _ = mixture(share, 3.0, seed=4, rows=10)
    assert 0 < priors.estimate(positive, unlabelled, seed=0) < 1


@pytest.mark.parametrize(("side", "counts"), [("positive", (9, 10)), ("unlabelled", (10, 9))])
def test_fewer_rows_are_refused(side, counts):
    with pytest.raises(ValueError, match=f"at least 10 {side} rows, got 9"):
        priors.estimate(np.ones([counts[0], 2]), np.ones([counts[1], 2]), seed=0)


# best_bin


def test_thin_bin_is_not_trusted():
    # deviation 2 * sqrt(ln 40 / 20) = 0.859, times 1.01 = 0.868
    # at 3: q_p = 0.1, q_u = 0: ratio 0, bound 0.868 / 0.1 = 8.68; at 1: q_p = 1, q_u = 0.4: bound 0.4 + 0.868 = 1.27
    assert priors.best_bin(np.array([3] + [1] * 9), np.array([1] * 4 + [0] * 6)) == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        # 1,000 rows a side: deviation 2 * sqrt(ln 40 / 2000) = 0.085895, times 1.01 = 0.086754
        # at 2: q_p = 0.5, q_u = 0.1: ratio 0.2, bound 2 * 0.186754 = 0.373507
        (186, 0.286),  # at 1: q_p = 1, q_u = 0.286: bound 0.372754, the lower one (without 1 + gamma the higher)
        (187, 0.2),  # at 1: q_u = 0.287: bound 0.373754, the higher one
    ],
)
def test_bin_has_the_least_upper_bound_of_the_paper(second, expected):
    positive = np.repeat([2, 1], [500, 500])
    unlabelled = np.repeat([2, 1, 0], [100, second, 900 - second])
    assert priors.best_bin(positive, unlabelled) == pytest.approx(expected)


# parse


def test_one_number_is_for_all_classes():
    np.testing.assert_array_equal(priors.parse("0.3", NAMES), [0.3, 0.3, 0.3])


def test_named_numbers_follow_the_order_of_the_classes():
    parsed = priors.parse("neutral=0.4, contradiction=2e-1,entailment = 0.3", NAMES)
    np.testing.assert_array_equal(parsed, [0.3, 0.4, 0.2])


def test_class_name_may_hold_an_equals_sign():
    np.testing.assert_array_equal(priors.parse("a=b=0.3,c=0.4", ["a=b", "c"]), [0.3, 0.4])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("much", "'much' is not a number"),
        ("", "'' is not a number"),
        ("0.3,0.3,0.4", "'0.3,0.3,0.4' is not a number"),
        ("0", "0 is not strictly between 0 and 1"),
        ("1", "1 is not strictly between 0 and 1"),
        ("-0.1", "-0.1 is not strictly between 0 and 1"),
        ("nan", "nan is not strictly between 0 and 1"),
        ("entailment=0.3,neutral=0.4,contradiction=1.2", "1.2 is not strictly between 0 and 1"),
        ("entailment=0.3,neutral=,contradiction=0.3", "'' is not a number"),
        ("entailment=0.3,neutral=0.4,other=0.3", "'other' is no class"),
        ("entailment=0.3,neutral=0.4", "contradiction missing"),
        ("entailment=0.3", "neutral, contradiction missing"),
        ("entailment=0.3,neutral=0.4,neutral=0.4,contradiction=0.3", "'neutral' is given twice"),
        ("entailment=0.3,0.4,contradiction=0.3", "'0.4' has no class name"),
    ],
)
def test_error_says_what_was_given_and_what_is_accepted(text, reason):
    with pytest.raises(ValueError) as error:
        priors.parse(text, NAMES)
    accepted = "expected one number for all classes, or name=number once for each of entailment, neutral, contradiction"
    assert str(error.value) == f"priors {text!r}: {reason}; {accepted}"


def test_importing_priors_does_not_import_tensorflow():
    code = "import sys, model.training.priors; sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2]).returncode == 0
