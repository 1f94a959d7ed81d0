"""Documents as rows of an Arrow table, and back."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from index.base import Known, Spec
from index.document import Document, fold
from index.ranking.fusion import Candidate

_TEXTS = ("id", "name", "description", "sector", "industry", "country", "website", "model", "text_hash")
_PLAIN = (*_TEXTS, "version", "indexed_at", "deleted")
COLUMNS = [*_PLAIN, "tags"]  # of a hit; the vector only where it is asked for
CANDIDATE_COLUMNS = ["id", "folded_name", "industry", "tags"]
KNOWN_COLUMNS = ["id", "version", "text_hash", "fields_hash", "model", "deleted"]


def schema(spec: Spec) -> pa.Schema:
    fields = [pa.field(name, pa.string(), nullable=False) for name in (*_TEXTS, "folded_name", "fields_hash")]
    fields += [pa.field(name, pa.int64(), nullable=False) for name in ("version", "indexed_at")]
    fields += [pa.field("deleted", pa.bool_(), nullable=False), pa.field("tags", pa.list_(pa.string()))]
    fields += [pa.field("embedding", pa.list_(pa.float32(), spec.dimension))]  # null in tombstones
    return pa.schema(fields, metadata={"model": spec.model, "created_at": str(now())})


def spec_of(table: pa.Schema) -> Spec:
    return Spec(table.metadata[b"model"].decode(), table.field("embedding").type.list_size)


def created_at(table: pa.Schema) -> int:
    return int(table.metadata[b"created_at"])


def to_rows(documents: Sequence[Document], table: pa.Schema) -> pa.Table:
    """Stamped with the time of writing. A tombstone keeps its id and version alone."""
    written = now()
    kept = [Document.tombstone(one.id, one.version) if one.deleted else one for one in documents]
    columns: dict[str, object] = {name: [getattr(one, name) for one in kept] for name in (*COLUMNS, "fields_hash")}
    columns |= {"indexed_at": [written] * len(kept), "folded_name": [fold(one.name) for one in kept]}
    width = table.field("embedding").type.list_size
    flat = np.zeros((len(kept), width), np.float32)
    for row, one in enumerate(kept):
        if one.embedding is not None:
            flat[row] = one.embedding
    missing = pa.array([one.embedding is None for one in kept])
    columns["embedding"] = pa.FixedSizeListArray.from_arrays(pa.array(flat.ravel()), width, mask=missing)
    return pa.table({name: columns[name] for name in table.names}, schema=table)


def to_documents(rows: pa.Table | pa.RecordBatch) -> Iterator[Document]:
    """With vectors where their column is there."""
    plain = [rows.column(name).to_pylist() for name in _PLAIN]
    tags = [tuple(values or ()) for values in rows.column("tags").to_pylist()]
    vectors = to_vectors(rows) if "embedding" in rows.schema.names else [None] * rows.num_rows
    for values, own_tags, vector in zip(zip(*plain, strict=True), tags, vectors, strict=True):
        yield Document(**dict(zip(_PLAIN, values, strict=True)), tags=own_tags, embedding=vector)


def to_candidates(rows: pa.Table, scores: Iterable[float]) -> Iterator[Candidate]:
    ids, names, industries, tags = (rows.column(name).to_pylist() for name in CANDIDATE_COLUMNS)
    for id, name, industry, own_tags, score in zip(ids, names, industries, tags, scores, strict=True):
        yield Candidate(id, name, (industry, *(own_tags or ())), score)


def to_vectors(rows: pa.Table | pa.RecordBatch) -> list[np.ndarray[tuple[int], np.dtype[np.float32]] | None]:
    column = rows.column("embedding")
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    present = column.is_valid().to_pylist()
    width = column.type.list_size
    flat = column.drop_null().flatten().to_numpy(zero_copy_only=False).reshape(-1, width)
    following = iter(flat)
    return [next(following) if there else None for there in present]


def to_known(rows: pa.Table) -> dict[str, Known]:
    columns = [rows.column(name).to_pylist() for name in KNOWN_COLUMNS]
    return {id: Known(*rest) for id, *rest in zip(*columns, strict=True)}


def now() -> int:
    return time.time_ns() // 1000
