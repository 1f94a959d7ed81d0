"""Mini-batches: every subset in its proportion, repeated anchors together, distinct texts grouped by length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from model.data.pairs import Pairs, strata
from model.data.variants import Variants
from model.errors import DataError

LENGTH_GROUPS = 4  # of a batch's distinct texts; more groups pad less but make matrices too small for the cores


class Batch(NamedTuple):
    """One step's input: distinct texts, and rows that point at them."""

    groups: tuple[np.ndarray, ...]  # LENGTH_GROUPS x int [n_g]: text numbers, shortest texts first
    left: np.ndarray  # int32 [B], into the concatenated groups
    right: np.ndarray  # int32 [B]
    labels: np.ndarray  # float32 [B, C]
    labelled: np.ndarray  # bool [B]
    known: (
        np.ndarray
    )  # bool [P, P]: is the left of row i known to go with the right of row j (rows with the close class)


def steps_per_epoch(pairs: Pairs, batch_size: int) -> int:
    """Batches of an epoch; refuses a batch size at which some class cannot be in every one of them.

    Negatives may be fewer: no risk is estimated from them alone, and people who answer begin with a handful.
    """
    steps = -(-len(pairs) // batch_size)
    for rows in strata(pairs):
        marks = pairs.labels[rows[0]]
        if marks.any() and len(rows) < steps:
            name = pairs.names[int(marks.argmax())]
            smallest = -(-len(pairs) // min(len(r) for r in strata(pairs) if pairs.labels[r[0]].any()))
            raise DataError(
                f"class {name!r} has {len(rows)} rows, too few to be in each of the {steps} batches of {batch_size}; "
                f"the smallest batch size that works is {smallest}"
            )
    return steps


def epoch_rows(pairs: Pairs, batch_size: int, seed: int, epoch: int) -> list[np.ndarray]:
    """Row numbers of each batch of an epoch, every row once.

    All subsets follow one random order of anchors, so the rows of an anchor fall into the same batch and its text
    is encoded once for all of them.
    """
    generator = np.random.default_rng([seed, epoch])
    steps = steps_per_epoch(pairs, batch_size)
    rank = generator.permutation(len(pairs.items))
    parts: list[list[np.ndarray]] = [[] for _ in range(steps)]
    for rows in strata(pairs):
        rows = generator.permutation(rows)
        rows = rows[np.argsort(rank[pairs.left[rows]], kind="stable")]
        cuts = len(rows) * np.arange(1, steps) // steps
        for part, some in zip(parts, np.split(rows, cuts), strict=True):
            part.append(some)
    return [np.concatenate(part) for part in parts]


class KnownPositives:
    """All labelled pairs of one class, in either direction, to keep them from being taken for negatives."""

    def __init__(self, pairs: Pairs, close_class: int):
        self._items = len(pairs.items)
        rows = pairs.labels[:, close_class] > 0
        left, right = pairs.left[rows].astype(np.int64), pairs.right[rows].astype(np.int64)
        self._keys = np.unique(np.concatenate([left * self._items + right, right * self._items + left]))

    def between(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Items [P] and [P] -> bool [P, P]; an item goes with itself, and equal partners go together."""
        keys = left.astype(np.int64)[:, None] * self._items + right[None, :]
        place = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return (self._keys[place] == keys) | (left[:, None] == right[None, :])


def assemble(
    pairs: Pairs,
    rows: np.ndarray,
    variants: Variants,
    lengths: np.ndarray,
    drop: float,
    generator: np.random.Generator,
    known: KnownPositives | None = None,
    close_class: int = 0,
) -> Batch:
    items = np.concatenate([pairs.left[rows], pairs.right[rows]])
    texts = variants.draw(items, drop, generator)
    distinct, place = np.unique(texts, return_inverse=True)
    order = np.argsort(lengths[distinct], kind="stable")
    position = np.empty_like(order)
    position[order] = np.arange(len(order))
    ends = position[place].astype(np.int32)
    labels, labelled = pairs.labels[rows], pairs.labelled[rows]
    if known is None:
        pairs_known = np.zeros((0, 0), bool)
    else:
        close = rows[labels[:, close_class] > 0]
        pairs_known = known.between(pairs.left[close], pairs.right[close])
    groups = tuple(np.split(distinct[order], length_cuts(lengths[distinct[order]])))
    return Batch(groups, ends[: len(rows)], ends[len(rows) :], labels, labelled, pairs_known)


def length_cuts(lengths: np.ndarray, groups: int = LENGTH_GROUPS) -> np.ndarray:
    """Where to cut ascending lengths [n] into groups so that the fewest padded tokens are spent: int [groups - 1]."""
    count = len(lengths)
    if count == 0:
        return np.zeros(groups - 1, np.int64)
    ends = np.arange(count + 1)
    longest = np.concatenate([[0], lengths])  # of the texts before each end
    cost = np.where(ends[:, None] <= ends, (ends - ends[:, None]) * longest, np.inf)  # [from, to], one group
    least, cut_before = cost[0], []
    for _ in range(groups - 1):
        total = least[:, None] + cost
        cut_before.append(total.argmin(axis=0))
        least = total.min(axis=0)
    cuts, end = [], count
    for choice in reversed(cut_before):
        end = int(choice[end])
        cuts.append(end)
    return np.array(cuts[::-1])


def padded_share(lengths: np.ndarray, groups: Sequence[np.ndarray]) -> float:
    """The share of a batch's tokens that is padding."""
    spent = sum(len(group) * lengths[group].max() for group in groups if len(group))
    return 1.0 - sum(int(lengths[group].sum()) for group in groups) / spent
