"""Two models on the same items: scores worked by hand, and what counts as worse."""

import numpy as np
import pytest

from model.evaluate.paired import MARGIN, compare, interval, pair_scores, reciprocal_ranks

# On a circle: 0 and 1 are 10 degrees apart, 2 is at 40, 3 at 90.
UNIT = np.stack([[np.cos(angle), np.sin(angle)] for angle in np.radians([0, 10, 40, 90])])
ALL = np.ones(4, bool)


def test_a_pair_scores_the_share_of_others_that_are_further():
    pairs, alike = np.array([[0, 1], [0, 2], [0, 3]]), np.array([True, True, True])
    # Of 0 the others are none: 1, 2 and 3 are all known to be like it.
    np.testing.assert_allclose(pair_scores(UNIT, pairs, alike, ALL), 0.5)
    # 2 against 1 (nearer) and 3 (further): one of two.
    np.testing.assert_allclose(pair_scores(UNIT, pairs[1:2], alike[:1], ALL), 0.5)
    np.testing.assert_allclose(pair_scores(UNIT, pairs[:1], alike[:1], ALL), 1.0)


def test_a_pair_that_is_not_alike_scores_the_share_of_others_that_are_nearer():
    pairs = np.array([[0, 3], [0, 1]])
    np.testing.assert_allclose(pair_scores(UNIT, pairs, np.array([False, False]), ALL), [1.0, 0.0])


def test_rows_that_do_not_count_are_no_others():
    counted = np.array([True, True, False, True])
    np.testing.assert_allclose(pair_scores(UNIT, np.array([[0, 3]]), np.array([True]), counted), [0.0])


def test_a_question_scores_one_over_the_rank_of_its_first_answer():
    asked = UNIT[[0, 3]]
    np.testing.assert_allclose(reciprocal_ranks(asked, UNIT, [[0, 3], [0, 1]]), [1.0, 1 / 3])


def test_a_model_that_is_lower_everywhere_is_worse_and_one_within_the_margin_is_not():
    groups, live = [str(number) for number in range(20)], np.full(20, 0.8)
    assert compare("x", groups, live, live - 2 * MARGIN).is_worse
    assert not compare("x", groups, live, live - MARGIN / 2).is_worse
    assert compare("x", groups, live, live - MARGIN / 2, margin=0.0).is_worse
    assert not compare("x", groups, live, live + 0.1).is_worse


def test_a_lower_mean_that_chance_explains_is_not_worse():
    differences = np.array([-0.3, 0.25, -0.2, 0.15])
    found = compare("x", list("abcd"), np.full(4, 0.5), 0.5 + differences)
    assert found.candidate < found.live - MARGIN
    assert not found.is_worse


def test_many_rows_of_one_group_are_one_fact():
    rows = np.r_[np.full(98, -0.1), 0.1, 0.1]
    apart = interval(rows, [str(number) for number in range(100)], 0)
    together = interval(rows, ["one"] * 98 + ["two", "three"], 0)
    assert apart[1] < 0 < together[1]


def test_the_draws_are_the_same_each_time():
    rows = np.array([0.1, -0.2, 0.3])
    assert interval(rows, list("abc"), 1) == pytest.approx(interval(rows, list("abc"), 1), abs=0)
