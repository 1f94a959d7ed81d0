"""Hits from the rows that LanceDB found."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from index.base import Facets, Hit
from index.document import FILTERABLE
from index.lance.rows import to_candidates, to_documents
from index.ranking.fusion import Candidate


def by_cosine(found: pa.Table) -> list[Hit]:
    return _hits(found, [1 - distance for distance in found["_distance"].to_pylist()])


def by_words(found: pa.Table) -> list[Hit]:
    return _hits(found, found["_score"].to_pylist())


def facets(found: pa.Table, top: int) -> Facets:
    """The `top` most frequent values of each field, equally frequent ones in the order of the alphabet."""
    counts = {}
    for field in FILTERABLE:
        values = pc.list_flatten(found[field]) if field == "tags" else found[field]
        pairs = [(item["values"], item["counts"]) for item in pc.value_counts(values).to_pylist() if item["values"]]
        counts[field] = sorted(pairs, key=lambda pair: (-pair[1], pair[0]))[:top]
    return counts


def candidates(found: pa.Table) -> list[Candidate]:
    """By cosine or by words, as they were asked for; by neither, without scores."""
    if "_distance" in found.column_names:
        scores = [1 - distance for distance in found["_distance"].to_pylist()]
    else:
        scores = found["_score"].to_pylist() if "_score" in found.column_names else [0.0] * found.num_rows
    return sorted(to_candidates(found, scores), key=lambda one: (-one.score, one.id))


def _hits(found: pa.Table, scores: list[float]) -> list[Hit]:
    hits = [Hit(document, score) for document, score in zip(to_documents(found), scores, strict=True)]
    return sorted(hits, key=lambda hit: (-hit.score, hit.document.id))
