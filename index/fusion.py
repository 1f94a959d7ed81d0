"""Several rankings of companies as one: reciprocal rank fusion, done here because servers sell it."""

from __future__ import annotations

from collections.abc import Sequence

# Cormack, Clarke and Büttcher, SIGIR 2009: flat enough that being in both rankings outweighs leading one.
DAMPING = 60


def fuse(rankings: Sequence[Sequence[str]], k: int) -> list[tuple[str, float]]:
    """The `k` best ids with their scores, the sum of 1 / (DAMPING + rank) over the rankings that hold them."""
    scores: dict[str, float] = {}
    for ranking in rankings:
        for rank, id in enumerate(dict.fromkeys(ranking), start=1):  # an id counts once a ranking, where it is best
            scores[id] = scores.get(id, 0.0) + 1 / (DAMPING + rank)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:k]
