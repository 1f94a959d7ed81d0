"""Hits from what Elasticsearch found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from index.base import Hit, Status
from index.document import Document, Vector
from index.elastic.cluster.aliases import PhysicalIndex
from index.elastic.mapping import to_document
from index.elastic.queries import NAMED
from index.ranking.fusion import Candidate


def by_cosine(found: Any) -> list[Hit]:
    """Elasticsearch scores must not be negative: a cosine is (1 + cosine) / 2 there."""
    return _ordered((to_document(hit["_id"], hit["_source"]), 2 * hit["_score"] - 1) for hit in found["hits"]["hits"])


def by_words(found: Any) -> list[Hit]:
    return _ordered((to_document(hit["_id"], hit["_source"]), hit["_score"]) for hit in found["hits"]["hits"])


def candidates(found: Any) -> list[Candidate]:
    """With the scores that the server gave."""
    return sorted(map(_candidate, found["hits"]["hits"]), key=lambda one: (-one.score, one.id))


def apart(found: list[Candidate]) -> tuple[list[Candidate], list[Candidate]]:
    """Those by words, and those whose names may be meant, which have NAMED more."""
    named = [replace(one, score=one.score - NAMED) for one in found if one.score >= NAMED]
    worded = [*(one for one in named if one.score > 0), *(one for one in found if one.score < NAMED)]
    return sorted(worded, key=lambda one: (-one.score, one.id)), named


def near_candidates(found: Any) -> list[Candidate]:
    return [replace(one, score=2 * one.score - 1) for one in candidates(found)]


def nearest(pages: Iterable[list[dict[str, Any]]], query: Vector, k: int) -> list[Hit]:
    """The k best of all, keeping no more than them and a page."""
    unit, best = query / np.linalg.norm(query), list[Hit]()
    for page in pages:
        documents = [to_document(hit["_id"], hit["_source"]) for hit in page]
        vectors = np.stack([one.embedding for one in documents if one.embedding is not None])  # [n, d]; all have one
        cosines = vectors @ unit / np.linalg.norm(vectors, axis=1)
        bare = (replace(one, embedding=None) for one in documents)
        best = _ordered([*((hit.document, hit.score) for hit in best), *zip(bare, cosines.tolist(), strict=True)])[:k]
    return best


def status(physical: PhysicalIndex, found: Any, size: int) -> Status:
    total, counts, newest = found["hits"]["total"]["value"], found["aggregations"], found["hits"]["hits"]
    tombstones, written = counts["tombstones"]["doc_count"], counts["newest_write"]["value"]
    return Status(
        model=physical.spec.model,
        dimension=physical.spec.dimension,
        physical=physical.name,
        created_at=physical.meta["created_at"],
        live=total - tombstones,
        tombstones=tombstones,
        newest_version=newest[0]["_source"]["version"] if newest else None,
        newest_write=None if written is None else round(written),
        bytes=size,
        vectors=f"approximate, {physical.kind}",
        purged=bool(physical.meta.get("purged")),
    )


def _candidate(hit: Any) -> Candidate:
    fields = hit.get("fields", {})
    labels = (*fields.get("industry", ()), *fields.get("tags", ()))
    return Candidate(hit["_id"], next(iter(fields.get("name_folded", ())), ""), labels, hit["_score"])


def _ordered(found: Iterable[tuple[Document, float]]) -> list[Hit]:
    return sorted((Hit(document, score) for document, score in found), key=lambda hit: (-hit.score, hit.document.id))
