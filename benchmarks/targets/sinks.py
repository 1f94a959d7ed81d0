"""Documents into an index: by the interface the pipeline writes through, and by Elasticsearch's own parallel helper."""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from elasticsearch import helpers

from benchmarks.measures.senders import seconds
from benchmarks.peers.contestant import ContestantError
from benchmarks.targets.cluster import Cluster
from index.base import Index, Spec
from index.document import Document
from index.elastic.mapping import to_source
from index.open import open_index
from pipelines.pipeline import EncodeConfig

BATCH = EncodeConfig.batch_size
THREADS, CHUNK = 4, 500  # parallel_bulk's own


class Sink:
    """Ours, in batches as the pipeline writes them. The index stays until the next load, for whoever searches it."""

    def __init__(self, url: str, spec: Spec, documents: Sequence[Document], drop: Callable[[], object]):
        self._url, self._spec, self._documents, self._drop = url, spec, documents, drop

    def __call__(self) -> float:
        """Seconds for all documents into a new index, until they can be found."""
        self._drop()
        index = open_index(self._url, create=self._spec)
        return seconds(lambda: self._load(index))

    def index(self) -> Index:
        return open_index(self._url)

    def _load(self, index: Index) -> None:
        batches = [self._documents[start : start + BATCH] for start in range(0, len(self._documents), BATCH)]
        with index.loading(), ThreadPoolExecutor(EncodeConfig.writes) as pool:
            for outcomes in pool.map(index.write, batches):
                wrong = [outcome for outcome in outcomes if outcome.status != "indexed"]
                if wrong:
                    raise ContestantError(f"{self._url} did not take a document: {wrong[0]}")


class ParallelBulk:
    """Theirs: the same documents in the same form, ready-made, into an index of the same mapping and settings."""

    def __init__(self, cluster: Cluster, name: str, spec: Spec, documents: Sequence[Document]):
        self._cluster, self._name, self._spec = cluster, name, spec
        self._actions = [action(name, document) for document in documents]

    def __call__(self) -> float:
        with self._cluster.new(self._name):
            self._cluster.create(self._name, self._spec)
            taken = seconds(self._load)
            found = self._cluster.client.count(index=self._name)["count"]
        if found != len(self._actions):
            raise ContestantError(f"parallel_bulk left {found:,} of {len(self._actions):,} documents")
        return taken

    def _load(self) -> None:
        client = self._cluster.client
        deque(helpers.parallel_bulk(client, self._actions, thread_count=THREADS, chunk_size=CHUNK), maxlen=0)
        client.indices.refresh(index=self._name)


def action(index: str, document: Document) -> dict[str, Any]:
    versioned = {"_id": document.id, "version": document.version, "version_type": "external"}
    return {"_index": index, **versioned, "_source": to_source(document, written=document.version)}


def removed(path: Path) -> Callable[[], object]:
    return lambda: shutil.rmtree(path, ignore_errors=True)
