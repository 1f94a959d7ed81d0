"""Training pairs: read and checked before any work, split by their labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from model.data.tsv import read_columns
from model.errors import DataError

SEPARATOR = "|"  # between the labels of a multi-label row


@dataclass(frozen=True)
class Pairs:
    """Pairs of items; an item is a text, or a company id where companies are given."""

    items: tuple[str, ...]
    left: np.ndarray  # int [N], into items
    right: np.ndarray  # int [N]
    labels: np.ndarray  # float32 [N, C], all zero where unlabelled or negative
    labelled: np.ndarray  # bool [N]
    names: tuple[str, ...]  # of the C classes
    multi_label: bool = False  # is each class judged by itself, not one against the others?

    def __len__(self) -> int:
        return len(self.left)

    @property
    def has_negatives(self) -> bool:
        return bool((self.labelled & ~self.labels.any(axis=1)).any())

    def take(self, rows: np.ndarray) -> Pairs:
        return replace(
            self,
            left=self.left[rows],
            right=self.right[rows],
            labels=self.labels[rows],
            labelled=self.labelled[rows],
        )


def read_pairs(
    path: str | Path,
    columns: Mapping[str, str] | None = None,
    unlabelled: str = "",
    negative: str | None = None,
    names: Sequence[str] | None = None,
) -> Pairs:
    """Reads a tab-separated file, plain or .gz.

    `columns` maps left, right and label to the file's own names; a label equal to `unlabelled` is none; `negative`
    is the label that means "none of the classes"; `names` fixes the classes (those of the training data, say).
    """
    wanted = [(columns or {}).get(name, name) for name in ("left", "right", "label")]
    numbers, rows = zip(*read_columns(Path(path), wanted, ", or --columns must map them"), strict=True)
    _check_texts(path, wanted[:2], numbers, rows)
    items: dict[str, int] = {}
    ends = np.array([[items.setdefault(text, len(items)) for text in row[:2]] for row in rows])
    marks = [[] if row[2] == unlabelled else _marks(row[2]) for row in rows]
    found = sorted({mark for row in marks for mark in row} - {negative})
    if names is not None and (strange := set(found) - set(names)):
        number, label = next(
            (n, mark) for n, row in zip(numbers, marks, strict=True) for mark in row if mark in strange
        )
        raise DataError(f"{path}, row {number}: label {label!r} is not among the trained ones ({', '.join(names)})")
    classes = tuple(found if names is None else names)
    column = {name: position for position, name in enumerate(classes)}
    labels = np.zeros((len(rows), len(classes)), np.float32)
    for row, row_marks in enumerate(marks):
        for mark in row_marks:
            if mark != negative:
                labels[row, column[mark]] = 1.0
    labelled = np.array([bool(row_marks) for row_marks in marks])
    multi_label = bool((labels.sum(axis=1) > 1).any())
    return Pairs(tuple(items), ends[:, 0], ends[:, 1], labels, labelled, classes, multi_label)


def _marks(cell: str) -> list[str]:
    return [mark for part in cell.split(SEPARATOR) if (mark := part.strip())]


def _check_texts(path: str | Path, columns: Sequence[str], numbers: Sequence[int], rows: Sequence[list[str]]) -> None:
    for number, row in zip(numbers, rows, strict=True):
        if "" in row[:2]:
            raise DataError(f"{path}, row {number}: the text in column {columns[row.index('')]!r} is empty")


def hide_labels(pairs: Pairs, share: float, seed: int) -> Pairs:
    """Keeps a share of the labels of every class (at least one each), drawn by `seed`; the rest turn unlabelled."""
    generator = np.random.default_rng(seed)
    kept = np.zeros(len(pairs), bool)
    for rows in strata(pairs):
        if pairs.labelled[rows[0]]:
            kept[generator.permutation(rows)[: max(1, round(share * len(rows)))]] = True
    return replace(pairs, labels=pairs.labels * kept[:, None], labelled=kept)


def split(pairs: Pairs, share: float, seed: int) -> tuple[Pairs, Pairs]:
    """The larger part for training, and `share` of every stratum for development."""
    generator = np.random.default_rng(seed)
    held = np.zeros(len(pairs), bool)
    for rows in strata(pairs):
        held[generator.permutation(rows)[: round(share * len(rows))]] = True
    return pairs.take(np.flatnonzero(~held)), pairs.take(np.flatnonzero(held))


def strata(pairs: Pairs) -> list[np.ndarray]:
    """Row numbers of each subset that is not empty: one a class, then the negatives, last the unlabelled.

    A row of several classes counts for the rarest of them. So every class is in a batch that has some of every subset,
    but for one that occurs beside rarer classes only: a batch may lack it, and its PU risk is then 0 there.
    """
    rarest = np.argsort(pairs.labels.sum(axis=0), kind="stable")
    classes = len(pairs.names)
    first = rarest[pairs.labels[:, rarest].argmax(axis=1)] if classes else 0
    subset = np.where(pairs.labels.any(axis=1), first, classes)
    subset = np.where(pairs.labelled, subset, classes + 1)
    return [rows for number in range(classes + 2) if len(rows := np.flatnonzero(subset == number))]
