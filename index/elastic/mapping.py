"""What Elasticsearch is told about the companies it keeps, and documents in that form, and back."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np

from index.base import Known, Spec
from index.document import FILTERABLE, Document, Vector, fold
from index.ranking.analysis import START_LENGTH, starts, telling_words, words

# int8_hnsw keeps one byte a number in memory beside the graph: some 0.55 KB for a vector of 384, so 2 million take
# 1.1 GB that must stay cached for searches to be quick. From there on bbq_hnsw, one bit a number: a quarter of that.
# It ranks more coarsely, so that eight times as many are fetched and put in order by their full vectors: of the ten
# nearest among 5,000 vectors in 100 clusters, three times as many found 0.91, five times 0.996, eight times all.
# Below, the coarser ranking would be paid for nothing. Under 64 numbers bbq is refused by the server.
BBQ_FROM = 2_000_000
BBQ_DIMENSION = 64
# What the quantised ranking found is ordered by the full vectors: scores are true cosines then.
OVERSAMPLE = {"int8_hnsw": 2.0, "bbq_hnsw": 8.0}

_TEXTS = ("name", "description", "sector", "industry", "country", "website", "model", "text_hash")
COLUMNS = [*_TEXTS, "tags", "version", "indexed_at", "deleted"]  # of a hit; the vector only where it is asked for
KNOWN_COLUMNS = ["version", "text_hash", "fields_hash", "model", "deleted", "indexed_at"]

_KEPT = {"type": "keyword", "index": False, "doc_values": False}
_LONG_TEXT = {"type": "text", "index": False, "norms": False}
_WORDS = {"type": "text", "analyzer": "whitespace", "index_options": "freqs"}


def vector_kind(dimension: int, companies: int) -> str:
    return "bbq_hnsw" if companies >= BBQ_FROM and dimension >= BBQ_DIMENSION else "int8_hnsw"


def mappings(spec: Spec, created_at: int, companies: int = 0) -> dict[str, Any]:
    """For an index that will hold about so many companies; a field that is not in here is refused."""
    kind = vector_kind(spec.dimension, companies)
    fields: dict[str, Any] = {
        **{name: _LONG_TEXT for name in ("name", "description", "website")},
        **{name: {"type": "keyword"} for name in FILTERABLE},
        **{name: _KEPT for name in ("model", "text_hash", "fields_hash")},
        **{name: {"type": "long"} for name in ("version", "indexed_at")},
        "deleted": {"type": "boolean"},
        "name_words": _WORDS,
        "description_words": _WORDS,
        "name_starts": {"type": "keyword", "doc_values": False},
        "name_folded": {"type": "keyword"},
        "name_length": {"type": "integer", "index": False},
        "embedding": {
            "type": "dense_vector",
            "dims": spec.dimension,
            "similarity": "cosine",
            "index": True,
            "index_options": {"type": kind},
        },
    }
    meta = {"model": spec.model, "dimension": spec.dimension, "created_at": created_at, "vectors": kind}
    return {"dynamic": "strict", "_meta": meta, "properties": fields}


def settings(whole_source: bool = True) -> dict[str, Any]:
    """`whole_source`: vectors come back bit for bit as they were sent, which costs 2 KB a company of 384 numbers.

    From 9.2 on Elasticsearch leaves them out of the source unless told so; older ones do not know the setting.
    """
    # Said outright, since a server left to its default stops refreshing what nobody searches for half a minute.
    chosen: dict[str, Any] = {"number_of_shards": 1, "refresh_interval": "1s"}
    return chosen | ({"mapping.exclude_source_vectors": False} if whole_source else {})


def to_source(document: Document, written: int, packed: bool = True) -> dict[str, Any]:
    """Stamped with the time of writing. A tombstone keeps its version alone."""
    if document.deleted:
        return {"version": document.version, "deleted": True, "indexed_at": written}
    assert document.embedding is not None
    folded = fold(document.name)
    return {
        **{name: getattr(document, name) for name in _TEXTS},
        "tags": list(document.tags),
        "version": document.version,
        "deleted": False,
        "indexed_at": written,
        "fields_hash": document.fields_hash,
        "name_words": " ".join(words(document.name)),
        "description_words": " ".join(telling_words(document.description)),
        "name_starts": starts(folded),
        "name_folded": folded[:START_LENGTH],
        "name_length": len(folded),
        "embedding": pack(document.embedding) if packed else document.embedding.tolist(),
    }


def to_document(id: str, source: Mapping[str, Any]) -> Document:
    """With its vector where that was asked for."""
    texts = {name: source.get(name, "") for name in _TEXTS}
    numbers = {name: source[name] for name in ("version", "indexed_at", "deleted")}
    vector = source.get("embedding")
    return Document(
        id, **texts, **numbers, tags=tuple(source.get("tags", ())), embedding=None if vector is None else unpack(vector)
    )


def to_known(source: Mapping[str, Any]) -> Known:
    if source["deleted"]:
        empty = Document.tombstone("", 0)
        return Known(source["version"], "", empty.fields_hash, "", True)
    return Known(source["version"], source["text_hash"], source["fields_hash"], source["model"], False)


def pack(vector: Vector) -> str:
    """Four bytes a number, the highest first, in base64: a quarter of the digits, and nothing to parse.

    With Elasticsearch 9.3.2, 5,000 documents of 384 numbers went in 1.6 to 2.9 times as fast as with JSON numbers, in
    eight pairs of runs on a busy machine.
    """
    return base64.b64encode(vector.astype(">f4").tobytes()).decode()


def unpack(stored: str | list[float]) -> Vector:
    if isinstance(stored, str):
        return np.frombuffer(base64.b64decode(stored), ">f4").astype(np.float32)
    return np.array(stored, np.float32)
