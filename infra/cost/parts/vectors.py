"""How much memory and disk the vectors of an index in Elasticsearch take: the formulas of its documentation."""

from __future__ import annotations

# As index/elastic/mapping.py decides it, which nothing outside of index/ imports; a test compares the two.
BBQ_FROM = 2_000_000
BBQ_DIMENSION = 64
GRAPH_LINKS = 16  # `m` of HNSW, Elasticsearch's default, which the mapping leaves as it is
LINK_BYTES = 4
FLOAT_BYTES = 4
# A byte a number and 4 of corrections, or a bit a number and 14.
QUANTISED = {"int8_hnsw": (1.0, 4.0), "bbq_hnsw": (1 / 8, 14.0)}
# The source keeps each vector once more, in base64: four letters for three bytes.
SOURCE_BYTES = FLOAT_BYTES * 4 / 3


def vector_kind(dimension: int, companies: float) -> str:
    """Of an index that pipelines.reindex makes; one that is made empty is `int8_hnsw`."""
    return "bbq_hnsw" if companies >= BBQ_FROM and dimension >= BBQ_DIMENSION else "int8_hnsw"


def memory_bytes(companies: float, dimension: int, kind: str = "") -> float:
    """Of one copy: quantised vectors and graph. What is not cached is read from disk for every question."""
    a_number, corrections = QUANTISED[kind or vector_kind(dimension, companies)]
    return companies * (dimension * a_number + corrections + LINK_BYTES * GRAPH_LINKS)


def disk_bytes(companies: float, dimension: int, kind: str = "") -> float:
    """Of one copy: what is in memory, the full vectors to put the best in order by, and those of the source."""
    return memory_bytes(companies, dimension, kind) + companies * dimension * (FLOAT_BYTES + SOURCE_BYTES)
