"""What becomes of documents given what is stored: the greatest order wins. Pure, for whatever back end keeps them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from index.base import Known, Outcome
from index.document import MAX_ID_BYTES, Document, Vector, is_unicode

_TEXTS = ("name", "description", "sector", "industry", "country", "website", "model", "text_hash")


def merge_versions(
    documents: Sequence[Document],
    known: Mapping[str, Known],
    vectors: Mapping[str, Vector],
    dimension: int,
    force: bool = False,
) -> tuple[list[Outcome], list[Document]]:
    """An outcome for each document, in order, and what to write: at most one document an id.

    `vectors` are the stored ones of at least those ids that come with a document that keeps its vector.
    """
    known, vectors, changed = dict(known), dict(vectors), dict[str, Document]()
    outcomes = []
    for document in documents:
        outcome = _outcome(document, known.get(document.id), dimension, force)
        outcomes.append(outcome)
        if outcome.status in ("stale", "failed"):
            continue
        if outcome.status == "indexed":
            if document.embedding is None:
                document = replace(document, embedding=vectors[document.id])
            else:
                vectors[document.id] = document.embedding  # a later document of this very call may keep it in turn
        known[document.id] = describe(document)
        changed[document.id] = document
    return outcomes, list(changed.values())


def describe(document: Document) -> Known:
    return Known(document.version, document.text_hash, document.fields_hash, document.model, document.deleted)


def _outcome(document: Document, stored: Known | None, dimension: int, force: bool) -> Outcome:
    reason = fault(document, dimension)
    if reason:
        return Outcome(document.id, "failed", reason)
    if stored and document.order <= stored.order and not (force and document.version == stored.version):
        return Outcome(document.id, "stale")
    if document.deleted:
        return Outcome(document.id, "deleted")
    if document.embedding is None and not keeps_vector(document, stored):
        return Outcome(document.id, "failed", "embedding: missing, and none is stored for this text and model")
    return Outcome(document.id, "indexed")


def keeps_vector(document: Document, stored: Known | None) -> bool:
    """Whether the stored vector is that of this document's text."""
    same = stored and (stored.text_hash, stored.model) == (document.text_hash, document.model)
    return bool(same and stored and not stored.deleted)


def fault(document: Document, dimension: int) -> str:
    """Why a document cannot be kept, naming the field; empty for a good one."""
    if not is_unicode(document.id) or not 1 <= len(document.id.encode()) <= MAX_ID_BYTES:
        return f"id: {document.id[:40]!r} is not 1 to {MAX_ID_BYTES} bytes of Unicode"
    if not 0 <= document.version < 2**63:
        return f"version: {document.version} is not from 0 to 2^63 - 1"
    texts = {name: getattr(document, name) for name in _TEXTS} | {"tags": "".join(document.tags)}
    if not is_unicode("".join(texts.values())):
        name, text = next((name, text) for name, text in texts.items() if not is_unicode(text))
        return f"{name}: {text[:40]!r} is not valid Unicode"
    if document.deleted or document.embedding is None:
        return ""
    if document.embedding.shape != (dimension,):
        return f"embedding: shape {document.embedding.shape}, the index takes ({dimension},)"
    # One number tells of nearly all vectors that they are well; of very large or small ones it may not.
    if 0 < document.embedding.dot(document.embedding) < np.inf:
        return ""
    good = np.isfinite(document.embedding).all() and document.embedding.any()
    return "" if good else "embedding: not finite, or all 0"
