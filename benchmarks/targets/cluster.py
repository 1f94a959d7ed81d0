"""A real Elasticsearch for a benchmark, and indices in it that go when they have been measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from elasticsearch import Elasticsearch as Client

from index.base import Spec
from index.elastic.mapping import mappings, settings, unpack
from index.elastic.writing.bulk_load import WHILE_LOADING
from infra.local.elasticsearch import Elasticsearch

REQUEST_SECONDS = 120


class Cluster:
    """One node on this machine, and a client of it."""

    def __init__(self) -> None:
        self._server = Elasticsearch()
        self.address = self._server.address
        self.client = Client(self.address, request_timeout=REQUEST_SECONDS)

    def create(self, name: str, spec: Spec) -> None:
        """With the mapping and settings that ours has while it is loaded, for others to fill."""
        self.client.indices.create(index=name, mappings=mappings(spec, 0), settings={**settings(), **WHILE_LOADING})

    def drop(self, alias: str) -> None:
        """An index of that name, or all behind it as an alias."""
        for name in self.client.indices.get(index=f"{alias}*").body:
            self.client.indices.delete(index=name)

    @contextmanager
    def new(self, alias: str) -> Iterator[str]:
        """The address of an index that is not there yet; what was made at it goes afterwards."""
        self.drop(alias)
        yield f"{self.address}/{alias}"
        self.drop(alias)

    def vectors(self, index: str, ids: Sequence[str]) -> np.ndarray:
        """float32 [n, d], in the order of the ids."""
        found = self.client.mget(index=index, ids=list(ids), source_includes=["embedding"])["docs"]
        return np.stack([unpack(one["_source"]["embedding"]) for one in found])

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        self._server.stop()
