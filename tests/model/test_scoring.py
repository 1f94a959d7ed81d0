"""Scores worked by hand: the head is a function that takes the left vectors for logits."""

import numpy as np
import pytest

from model.data.pairs import Pairs
from model.evaluate.scoring import classifier_scores, space_scores

UNUSED = np.zeros([9, 1])


def as_logits(left, right):
    return left


def made(labels, labelled=None, multi_label=False):
    labels = np.array(labels, np.float32)
    ends = np.arange(len(labels))
    labelled = np.ones(len(labels), bool) if labelled is None else np.array(labelled)
    return Pairs(tuple(map(str, ends)), ends, ends, labels, labelled, tuple("abc"[: labels.shape[1]]), multi_label)


def scores(pairs, logits):
    return classifier_scores(as_logits, pairs, np.array(logits), UNUSED[: len(pairs)])


def test_one_class_against_negatives_is_a_question_of_the_sign():
    # truth + + + - -, guess + + - + -: 3 of 5 right; 2 of 3 guessed are true; 2 of 3 true are found
    found = scores(made([[1], [1], [1], [0], [0]]), [[2.0], [0.1], [-1.0], [3.0], [-0.1]])
    assert found == pytest.approx({"accuracy": 3 / 5, "precision": 2 / 3, "recall": 2 / 3})


def test_exclusive_classes_are_guessed_by_the_highest_logit_and_averaged_alike():
    # truth a a a b, guess a a b b (all logits negative: signs do not matter): accuracy 3/4
    # precision a 2/2, b 1/2: mean 3/4; recall a 2/3, b 1/1: mean 5/6
    logits = [[-1.0, -2.0], [-1.0, -3.0], [-2.0, -1.0], [-5.0, -1.0]]
    found = scores(made([[1, 0], [1, 0], [1, 0], [0, 1]]), logits)
    assert found == pytest.approx({"accuracy": 3 / 4, "precision": 3 / 4, "recall": 5 / 6})


def test_of_several_classes_a_row_all_must_be_right():
    # rows: ab guessed ab, a guessed ab, b guessed a: 1 of 3 wholly right
    # a: truth + + -, guess + + +: precision 2/3, recall 1; b: truth + - +, guess + + -: precision 1/2, recall 1/2
    pairs = made([[1, 1], [1, 0], [0, 1]], multi_label=True)
    found = scores(pairs, [[1.0, 1.0], [1.0, 1.0], [1.0, -1.0]])
    assert found == pytest.approx({"accuracy": 1 / 3, "precision": 7 / 12, "recall": 3 / 4})


def test_unlabelled_rows_do_not_count():
    labels, logits = [[1, 0], [0, 1], [0, 0]], [[1.0, 0.0], [1.0, 0.0], [9.0, 0.0]]
    assert scores(made(labels, [True, True, False]), logits)["accuracy"] == 1 / 2
    # labelled, the third row is a negative that is guessed wrong: 1 of 3
    assert scores(made(labels, [True, True, True]), logits)["accuracy"] == pytest.approx(1 / 3)


def test_a_class_that_is_never_guessed_has_no_precision_and_does_not_warn():
    found = scores(made([[1, 0], [0, 1]]), [[1.0, 0.0], [1.0, 0.0]])  # a: precision 1/2, recall 1; b: 0 and 0
    assert found == pytest.approx({"accuracy": 1 / 2, "precision": 1 / 4, "recall": 1 / 2})


@pytest.mark.parametrize(
    ("labels", "labelled"), [([[1], [1], [0]], [True, True, False]), ([[0, 0], [0, 0]], [False, False])]
)
def test_there_is_no_score_where_there_is_nothing_to_tell_apart(labels, labelled):
    assert scores(made(labels, labelled), np.zeros([len(labels), len(labels[0])])) == {}


# the space


def test_auc_is_the_share_of_close_rows_that_lie_closer_than_others():
    # cosines: close rows 1 and 0, others 0.6, -1 and 0: of 6 comparisons 1 wins 3, 0 wins one and ties one: 4.5 / 6
    left = np.array([[1.0, 0.0]] * 5)
    right = np.array([[5.0, 0.0], [0.0, 2.0], [3.0, 4.0], [-1.0, 0.0], [0.0, -7.0]])
    pairs = made([[1, 0], [1, 0], [0, 1], [0, 0], [0, 0]], [True, True, True, False, False])
    assert space_scores(pairs, 0, left, right) == {"auc": pytest.approx(4.5 / 6)}
    # close means class b: 0.6 beats -1, 0, 0 and loses to 1
    assert space_scores(pairs, 1, left, right) == {"auc": pytest.approx(3 / 4)}


def test_a_vector_of_zeros_has_the_cosine_zero():
    left = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    right = np.array([[1.0, 0.0], [-1.0, 0.0], [1.0, 0.0]])
    # the close row at 0 beats -1 and loses to 1
    assert space_scores(made([[1], [0], [0]]), 0, left, right) == {"auc": pytest.approx(1 / 2)}


@pytest.mark.parametrize("labels", [[[1], [1]], [[0], [0]]])
def test_there_is_no_auc_of_one_kind_of_rows(labels):
    assert space_scores(made(labels), 0, np.ones([2, 2]), np.ones([2, 2])) == {}
