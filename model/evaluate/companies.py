"""Similar companies (the paper's table 4, and what a search needs besides): are known peers close to each other?

- `auc`: how often a known pair has a higher cosine than a random one. Every listed pair counts once; against them
  stand five times as many random pairs of two companies, none of them known in either direction.
- `recall@k`: for each company listed on the left (anchor), the share of the companies listed with it that are among
  its k nearest of all companies but itself; the mean over these anchors.
- `accuracy`, `precision`, `recall`: of the model's own classifier, where pairs are labelled with its classes.

The length of the texts counts: all-MiniLM-L6-v2, untouched, on "{industry}. {description}" of the public peers has
auc 0.874, recall@10 0.119 and recall@50 0.299 at its own 256 tokens, but 0.887, 0.140 and 0.339 at 128.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from model.data.companies import read_companies
from model.data.pairs import Pairs, read_pairs
from model.data.tsv import read_columns, read_header
from model.errors import DataError

RANDOM_PER_PAIR = 5
NEIGHBOURS = (10, 50)
ROWS_AT_ONCE = 512  # x 36,000 companies: 75 MB of cosines
FILES = (
    ("companies.jsonl", "pairs.tsv"),
    ("companies.jsonl.gz", "pairs.tsv"),
    ("peers-companies.jsonl.gz", "peers-pairs.tsv"),
)
ENDS = (("left", "right"), ("anchor", "candidate"))
ACCEPTED = ", or ".join(" and ".join(names) for names in ENDS)
UNNAMED = "peer"  # the class of all pairs in a file without labels


@dataclass(frozen=True)
class Peers:
    """Companies, and the pairs of them that a file lists."""

    companies: dict[str, dict]
    pairs: Pairs  # items are the ids of the companies, in their order
    unknown: int  # pairs left out because one of the two is not among the companies

    def positives(self) -> np.ndarray:
        """Row numbers of companies, int [P, 2], each pair once in each direction that is listed."""
        rows = self.pairs.labels.any(axis=1) & (self.pairs.left != self.pairs.right)
        return np.unique(np.column_stack([self.pairs.left[rows], self.pairs.right[rows]]), axis=0)


def find_files(data: Path) -> tuple[Path, Path]:
    """The companies and the pairs in a directory, or in `companies/` below it."""
    if not data.is_dir():
        raise DataError(f"--data {data}: no such directory")
    for folder in (data, data / "companies"):
        for companies, pairs in FILES:
            if (folder / companies).exists() and (folder / pairs).exists():
                return folder / companies, folder / pairs
    accepted = ", or ".join(f"{companies} and {pairs}" for companies, pairs in FILES)
    raise DataError(f"--data {data}: it must hold {accepted}; --companies and --pairs name other files")


def read_peers(companies_file: Path, pairs_file: Path, negative: str) -> Peers:
    """All pairs of a file without labels are positive, else those with a label other than `negative`."""
    companies = read_companies(companies_file)
    pairs = _read_listed(pairs_file, negative)
    place = {name: row for row, name in enumerate(companies)}
    rows = np.array([place.get(item, -1) for item in pairs.items])
    pairs = replace(pairs, items=tuple(companies), left=rows[pairs.left], right=rows[pairs.right])
    there = (pairs.left >= 0) & (pairs.right >= 0)
    peers = Peers(companies, pairs.take(np.flatnonzero(there)), int((~there).sum()))
    if not there.any():
        raise DataError(f"{pairs_file}: none of its {len(pairs)} pairs names two companies of {companies_file}")
    if not len(peers.positives()):
        raise DataError(f"{pairs_file}: no pair of two companies has a label other than {negative!r} (see --negative)")
    return peers


def _read_listed(path: Path, negative: str) -> Pairs:
    header = read_header(path, ACCEPTED)
    ends = next((names for names in ENDS if set(names) <= set(header)), None)
    if ends is None:
        raise DataError(f"{path}: its first line must name the columns {ACCEPTED}")
    if "label" in header:
        return read_pairs(path, dict(zip(("left", "right"), ends, strict=True)), negative=negative)
    rows = np.array([cells for _, cells in read_columns(path, ends)])
    items, places = np.unique(rows, return_inverse=True)
    left, right = places.reshape(rows.shape).T
    every = np.ones(len(rows), bool)
    return Pairs(tuple(items.tolist()), left, right, every[:, np.newaxis].astype(np.float32), every, (UNNAMED,))


def space_scores(vectors: np.ndarray, positives: np.ndarray, seed: int) -> dict[str, float]:
    """Vectors [n, D] and pairs of their rows [P, 2] -> AUC and recalls of the cosine space."""
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    recalls = {f"recall@{k}": recall for k, recall in recall_at(NEIGHBOURS, unit, positives).items()}
    return {"auc": auc(unit, positives, seed), **recalls}


def auc(unit: np.ndarray, positives: np.ndarray, seed: int) -> float:
    from sklearn.metrics import roc_auc_score

    others = random_pairs(len(unit), positives, RANDOM_PER_PAIR * len(positives), seed)
    left, right = np.concatenate([positives, others]).T
    truth = np.repeat([True, False], [len(positives), len(others)])
    return float(roc_auc_score(truth, np.einsum("pd,pd->p", unit[left], unit[right])))


def random_pairs(companies: int, positives: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Pairs of two different companies that are not known as positive in either direction, int [count, 2]."""

    def keys(pairs: np.ndarray) -> np.ndarray:
        return pairs.min(axis=1) * companies + pairs.max(axis=1)

    known = np.unique(keys(positives))
    if len(known) == companies * (companies - 1) // 2:
        raise DataError("every pair of these companies is a positive one, so there is nothing to tell them from")
    generator = np.random.default_rng(seed)
    found = np.zeros((0, 2), np.int64)
    while len(found) < count:
        drawn = generator.integers(companies, size=(count, 2))
        usable = (drawn[:, 0] != drawn[:, 1]) & ~np.isin(keys(drawn), known)
        found = np.concatenate([found, drawn[usable]])
    return found[:count]


def recall_at(ks: Sequence[int], unit: np.ndarray, positives: np.ndarray) -> dict[int, float]:
    anchors, place = np.unique(positives[:, 0], return_inverse=True)
    deepest = min(max(ks), len(unit) - 1)
    chunks = (anchors[start : start + ROWS_AT_ONCE] for start in range(0, len(anchors), ROWS_AT_ONCE))
    nearest = np.concatenate([_nearest(unit, chunk, deepest) for chunk in chunks])  # [A, deepest]
    hits = nearest[place] == positives[:, 1:]  # [P, deepest], at most one in a row
    peers = np.bincount(place)
    return {k: float(np.mean(np.bincount(place, hits[:, :k].any(axis=1)) / peers)) for k in ks}


def _nearest(unit: np.ndarray, rows: np.ndarray, k: int) -> np.ndarray:
    """The k nearest of each row, nearest first and never itself: int [rows, k]."""
    cosines = unit[rows] @ unit.T
    cosines[np.arange(len(rows)), rows] = -np.inf
    some = np.argpartition(-cosines, k - 1, axis=1)[:, :k]
    order = np.argsort(-np.take_along_axis(cosines, some, axis=1), axis=1, kind="stable")
    return np.take_along_axis(some, order, axis=1)


def class_scores(model, peers: Peers, vectors: np.ndarray) -> dict[str, float]:
    """Of the model's head, where it has one for these labels; `vectors` [n, D] are not normalised, as in training."""
    from model.evaluate.scoring import classifier_scores

    pairs = peers.pairs
    if model.head is None or not set(pairs.names) <= set(model.names):
        return {}
    labels = np.zeros((len(pairs), len(model.names)), np.float32)
    labels[:, [model.names.index(name) for name in pairs.names]] = pairs.labels
    pairs = replace(pairs, labels=labels, names=tuple(model.names))
    return classifier_scores(model.head, pairs, vectors[pairs.left], vectors[pairs.right])
