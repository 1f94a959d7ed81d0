"""Answers from the rows that LanceDB found."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from index.base import Facets, Hit, Suggestion
from index.document import FILTERABLE
from index.lance.rows import to_documents


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


def suggestions(names: pa.Table, typed: str, k: int) -> list[Suggestion]:
    """Names that begin as typed before those with a later word that does, then the shorter ones; both are folded.

    By Arrow: the first letter typed finds thousands, and somebody waits at every key.
    """
    begins = pc.starts_with(names["folded_name"], typed)
    names = names.append_column("begins", pc.cast(begins, pa.int8()))
    found = names.filter(pc.or_(begins, pc.match_substring(names["folded_name"], f" {typed}")))
    found = found.append_column("length", pc.utf8_length(found["folded_name"]))
    order = [("begins", "descending"), *((column, "ascending") for column in ("length", "folded_name", "id"))]
    best = found.take(pc.sort_indices(found, order)[:k])
    return [Suggestion(row["id"], row["name"]) for row in best.select(["id", "name"]).to_pylist()]


def _hits(found: pa.Table, scores: list[float]) -> list[Hit]:
    hits = [Hit(document, score) for document, score in zip(to_documents(found), scores, strict=True)]
    return sorted(hits, key=lambda hit: (-hit.score, hit.document.id))
