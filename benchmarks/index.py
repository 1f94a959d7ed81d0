"""The index: documents a second into either back end, held against Elasticsearch's own helper, and what is found."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from benchmarks.measures import recall
from benchmarks.measures.data import BUILD, need
from benchmarks.measures.rounds import alternate, row
from benchmarks.serving import SEED, exported
from benchmarks.targets.cluster import Cluster
from benchmarks.targets.server import Server
from benchmarks.targets.sinks import ParallelBulk, Sink, removed
from index.base import Spec
from index.document import Document, text_hash
from model.data.companies import read_companies
from model.errors import DataError
from serving.client import EmbeddingClient

FOLDER = BUILD / "index"
ROUNDS, QUERIES = 5, 1000
WARM_UP = 1  # round that does not count: a young Java machine is slow
ENCODED_AT_ONCE = 1024
MODEL = "0" * 16  # stands for whichever made the vectors: it is the same for all
FIELDS = ("name", "description", "sector", "industry", "country")
LANCE, ELASTIC, BULK = "LanceDB", "Elasticsearch", "parallel_bulk"
SINK, RECALL = 0.9, 0.98


def run(data: Path, rounds: int = ROUNDS, documents: int | None = None, vectors: Path | None = None) -> dict:
    (listed,) = need(data, "companies/listed.jsonl.gz")
    companies = list(read_companies(listed).values())
    made = read(vectors, len(companies)) if vectors else encoded([company["description"] for company in companies])
    kept = to_documents(companies[:documents], made)
    spec = Spec(MODEL, made.shape[1])
    with Cluster() as cluster:
        folder = FOLDER / "lance"
        sinks = {
            ELASTIC: Sink(f"{cluster.address}/sink", spec, kept, lambda: cluster.drop("sink")),
            LANCE: Sink(str(folder), spec, kept, removed(folder)),
        }
        contestants: dict[str, Callable[[], float]] = {**sinks, BULK: ParallelBulk(cluster, "bulk", spec, kept)}
        alternate(contestants, WARM_UP)
        taken = alternate(contestants, rounds)
        rates = {name: len(kept) / each for name, each in taken.items()}
        result = {
            f"{ELASTIC} sink / {BULK}": row("documents/s", rates[ELASTIC], rates[BULK], SINK),
            f"{LANCE} sink / {ELASTIC} sink": row("documents/s", rates[LANCE], rates[ELASTIC]),
        }
        return result | {f"{name}, approximate / exact": found(sink, kept) for name, sink in sinks.items()}


def read(file: Path, count: int) -> np.ndarray:
    try:
        made = np.load(file)
    except (OSError, ValueError) as error:
        raise DataError(f"{file} cannot be read as an array of numpy: {error}") from error
    if made.ndim != 2 or len(made) != count:
        raise DataError(f"{file} has shape {made.shape}; a vector for each of {count:,} companies is needed")
    return made


def to_documents(companies: Sequence[dict], vectors: np.ndarray, model: str = MODEL) -> list[Document]:
    """Of as many companies as are given, from the first vector on."""
    documents = []
    for company, vector in zip(companies, vectors, strict=False):
        fields: dict[str, Any] = {name: company.get(name) or "" for name in FIELDS}
        hashed, numbers = text_hash(company["description"]), np.asarray(vector, np.float32)
        documents.append(Document(company["id"], 1, model=model, text_hash=hashed, embedding=numbers, **fields))
    return documents


def encoded(texts: list[str], file: Path | None = None) -> np.ndarray:
    """float32 [n, d] by the exported base encoder, kept for the next time."""
    file = file or FOLDER / "vectors.npy"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        parts = []
        print(f"encoding {len(texts):,} texts, once: {file} keeps the vectors", file=sys.stderr)
        with (
            Server(exported().parent) as server,
            EmbeddingClient([server.address]) as client,
            tqdm(total=len(texts), desc="encoding", unit="text") as bar,
        ):
            for start in range(0, len(texts), ENCODED_AT_ONCE):
                parts.append(client.embed(texts[start : start + ENCODED_AT_ONCE])[0])
                bar.update(len(parts[-1]))
        partial = file.with_suffix(".partial.npy")
        np.save(partial, np.concatenate(parts))
        partial.rename(file)
    return read(file, len(texts))


def found(sink: Sink, documents: Sequence[Document]) -> dict:
    vectors = {one.id: one.embedding for one in documents if one.embedding is not None}
    ids = list(vectors)
    queries = [ids[row] for row in np.random.default_rng(SEED).permutation(len(ids))[:QUERIES]]
    measured = recall.measure(sink.index(), MODEL, vectors, queries)
    share = round(measured.share, 4)
    return {
        "ours": share,
        "unit": f"recall@{recall.NEAREST}",
        "bar": f">= {RECALL:g}",
        "met": "yes" if share >= RECALL else "no",
        "p50 ms": round(measured.p50, 1),
        "p99 ms": round(measured.p99, 1),
    }
