"""Unsupervised STS (the paper's table 1): does the cosine rank pairs of sentences as people do?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from model.data.tsv import read_columns
from model.errors import DataError
from model.evaluate.table import data_folder

Encode = Callable[[Sequence[str]], np.ndarray]  # texts -> unit vectors [n, D]

SETS = {
    "sts12": "sts12.tsv",
    "sts13": "sts13.tsv",
    "sts14": "sts14.tsv",
    "sts15": "sts15.tsv",
    "sts16": "sts16.tsv",
    "stsb": "stsb-test.tsv",
    "sickr": "sickr-test.tsv",
}


@dataclass(frozen=True)
class ScoredPairs:
    """Pairs of sentences with the score people gave them."""

    left: tuple[str, ...]
    right: tuple[str, ...]
    scores: np.ndarray  # float [n]

    def __len__(self) -> int:
        return len(self.left)


def read_sets(data: Path) -> dict[str, ScoredPairs]:
    folder = data_folder(data, "sts")
    return {name: read_scored_pairs(folder / file) for name, file in SETS.items()}


def read_splits(data: Path) -> dict[str, ScoredPairs]:
    """The STS benchmark for fine-tuning: train, dev and test."""
    folder = data_folder(data, "sts")
    return {split: read_scored_pairs(folder / f"stsb-{split}.tsv") for split in ("train", "dev", "test")}


def read_scored_pairs(path: Path) -> ScoredPairs:
    rows = read_columns(path, ["score", "sentence1", "sentence2"])
    scores = np.empty(len(rows))
    for position, (number, (score, *_)) in enumerate(rows):
        try:
            scores[position] = float(score)
        except ValueError as error:
            raise DataError(f"{path}, row {number}: the score {score!r} is not a number") from error
    return ScoredPairs(tuple(cells[1] for _, cells in rows), tuple(cells[2] for _, cells in rows), scores)


def score(sets: dict[str, ScoredPairs], encode: Encode) -> dict[str, float]:
    """Spearman x 100 of each set; the subsets of a year are ranked together, not averaged."""
    return {name: spearman(cosines(pairs, encode), pairs.scores) for name, pairs in sets.items()}


def cosines(pairs: ScoredPairs, encode: Encode) -> np.ndarray:
    vectors = encode([*pairs.left, *pairs.right])
    return (vectors[: len(pairs)] * vectors[len(pairs) :]).sum(axis=1)


def spearman(found: np.ndarray, wanted: np.ndarray) -> float:
    """Rank correlation x 100; 0 where one side ranks nothing: a collapsed encoder, or a diverged one (NaN)."""
    from scipy.stats import spearmanr

    if not (np.ptp(found) > 0 and np.ptp(wanted) > 0):
        return 0.0
    return float(100 * spearmanr(found, wanted).statistic)
