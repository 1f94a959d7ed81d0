"""Two models on the same items: what each scores on every one of them, and whether the one is worse than by chance.

A score is from 0 to 1, and the higher the better. Items come in groups (all answers on one company, say), which are
drawn together: what one list says of a model is not as many facts as it has rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

DRAWS, LEVEL = 1000, 0.95
MARGIN = 0.005  # what may be given up on an evaluation that is not what a model was trained for


@dataclass(frozen=True)
class Comparison:
    """Mean scores of two models on one set of items, and the bootstrap interval of their difference."""

    name: str
    items: int
    live: float
    candidate: float
    low: float  # ends of the interval of the difference
    high: float
    margin: float

    @property
    def is_worse(self) -> bool:
        """Whether all of the interval is below the margin: with few items it is wide, and says so."""
        return self.high < -self.margin


def compare(
    name: str, groups: Sequence[str], live: np.ndarray, candidate: np.ndarray, margin: float = MARGIN, seed: int = 0
) -> Comparison:
    """Scores [n] of either model on the same items, each in a group."""
    low, high = interval(candidate - live, groups, seed)
    return Comparison(name, len(groups), float(live.mean()), float(candidate.mean()), low, high, margin)


def interval(differences: np.ndarray, groups: Sequence[str], seed: int) -> tuple[float, float]:
    """Of the mean difference, by bootstrap over the groups."""
    _, place = np.unique(np.asarray(groups), return_inverse=True)
    sums, sizes = np.bincount(place, differences), np.bincount(place)
    drawn = np.random.default_rng(seed).integers(len(sizes), size=(DRAWS, len(sizes)))
    means = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def pair_scores(unit: np.ndarray, pairs: np.ndarray, alike: np.ndarray, others: np.ndarray) -> np.ndarray:
    """For pairs of rows [P, 2] of unit vectors [n, D]: the share of the other companies that are further from the
    left one than the right one is; of pairs that are not `alike` [P], the share that is nearer. `others` [n] are the
    rows that count. Rows known to be like the left one are no others of it."""
    friends: dict[int, set[int]] = {}
    for (left, right), same in zip(pairs.tolist(), alike, strict=True):
        friends.setdefault(left, {left}).add(right) if same else friends.setdefault(left, {left})
    scores = np.empty(len(pairs))
    for number, (left, right) in enumerate(pairs.tolist()):
        cosines = unit @ unit[left]
        counted = others.copy()
        counted[[*friends[left], right]] = False
        share = float((cosines[counted] < cosines[right]).mean()) if counted.any() else 0.5
        scores[number] = share if alike[number] else 1 - share
    return scores


def reciprocal_ranks(asked: np.ndarray, unit: np.ndarray, expected: Sequence[Sequence[int]]) -> np.ndarray:
    """For questions [Q, D] among companies [n, D]: one over the rank of the first that is expected."""
    scores = np.empty(len(asked))
    for number, rows in enumerate(expected):
        cosines = unit @ asked[number]
        scores[number] = 1 / (1 + int((cosines > cosines[list(rows)].max()).sum()))
    return scores


def rows_of(ids: Sequence[str], wanted: Sequence[tuple[str, str]]) -> np.ndarray:
    """Pairs of ids as pairs of their places, int [P, 2]."""
    place: Mapping[str, int] = {id: row for row, id in enumerate(ids)}
    return np.array([[place[left], place[right]] for left, right in wanted], np.int64).reshape(-1, 2)
