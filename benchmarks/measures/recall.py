"""How many of the truly nearest companies an approximate search finds, and how long it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from tqdm import tqdm

from benchmarks.measures.senders import seconds
from index.base import Index
from index.document import Filters

NEAREST = 10
WARM_UP = 50  # queries whose time is not taken
TIE = 1e-6  # cosines closer than that are equal: companies listed twice have one description


@dataclass(frozen=True)
class Recall:
    """Share of the nearest that were found, and milliseconds of a query."""

    share: float
    p50: float  # ms
    p99: float


def measure(index: Index, model: str, vectors: Mapping[str, np.ndarray], queries: Sequence[str]) -> Recall:
    """Of unit vectors by id; a query is a company by its id, and is not among its own answers."""
    results: dict[str, list[str]] = {}
    taken = []

    def ask(id: str) -> None:
        hits = index.nearest(vectors[id], NEAREST, model=model, filters=Filters(exclude_ids=(id,)))
        results[id] = [hit.document.id for hit in hits]

    for id in queries[:WARM_UP]:
        ask(id)
    for id in tqdm(queries, desc="queries", unit="query", disable=None):
        taken.append(1e3 * seconds(lambda: ask(id)))  # noqa: B023
    p50, p99 = np.percentile(taken, [50, 99])
    return Recall(recall(vectors, results), float(p50), float(p99))


def recall(vectors: Mapping[str, np.ndarray], results: Mapping[str, Sequence[str]]) -> float:
    """The share of the places of all answers that hold one of the nearest; whoever ties with the last one is one."""
    rows = {id: row for row, id in enumerate(vectors)}
    every = np.stack(list(vectors.values()))  # [n, d]
    wanted = min(NEAREST, len(rows) - 1)
    right = 0
    for id, found in results.items():
        cosines = every @ vectors[id]  # [n]
        cosines[rows[id]] = -np.inf
        least = np.partition(cosines, -wanted)[-wanted] - TIE
        right += sum(cosines[rows[one]] >= least for one in set(found))
    return right / (wanted * len(results))
