"""A back end of dictionaries at memory://name, for one process and a few companies: the least that one must do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from memory_search import MemoryReading, Place, now

from index.backend import Backend
from index.base import Index, Known, Outcome, Spec
from index.document import Document
from index.errors import IndexUnusable
from index.merge_versions import describe, merge_versions


class MemoryBackend(Backend):
    name = "memory"
    is_remote = False

    def __init__(self) -> None:
        self._places: dict[str, Place] = {}

    def open(self, url: str, create: Spec | None, retry_seconds: float | None) -> Index:
        place = self._places.setdefault(url, Place())
        index = MemoryIndex(url, place)
        with place.writing:
            if create and not place.history:
                place.history = [place.begin(create).name]
        if create:
            index.require(create.model)
        index.spec()  # raises where nothing has been created
        return index

    def local(self, url: str, what: str) -> Path:
        return Path("build", what, url.removeprefix("memory://"))

    def beside(self, url: str, what: str) -> Path:
        path = self.local(url, what)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


class MemoryIndex(MemoryReading):
    def __init__(self, url: str, place: Place, pinned: str | None = None, instead_of: str | None = None):
        super().__init__(url, place, pinned)
        self._instead_of = instead_of  # the one that was live when this one was begun

    # writing

    def write(self, documents: Sequence[Document], force: bool = False) -> list[Outcome]:
        with self._place.writing:
            for model in {one.model for one in documents if not one.deleted}:
                self.require(model)
            table, ids = self._table(), {one.id for one in documents}
            stored = {id: table.documents[id] for id in ids if id in table.documents}
            known = {id: describe(one) for id, one in stored.items()}
            vectors = {id: one.embedding for id, one in stored.items() if one.embedding is not None}
            outcomes, changed = merge_versions(documents, known, vectors, table.spec.dimension, force)
            for one in changed:
                kept = Document.tombstone(one.id, one.version) if one.deleted else one
                table.documents[one.id] = replace(kept, indexed_at=now())
                table.written[one.id] = next(self._place.writes)
        return outcomes

    def purge(self, older_than_seconds: float) -> int:
        table, before = self._table(), now() - round(older_than_seconds * 1e6)
        old = [id for id, one in table.documents.items() if one.deleted and one.indexed_at < before]
        table.purged = table.purged or bool(old)
        return self._drop(old)

    def remove(self, known: Mapping[str, Known]) -> int:
        return self._drop([id for id, one in self.known(known).items() if one.order == known[id].order])

    def _drop(self, ids: list[str]) -> int:
        with self._place.writing:
            for id in ids:
                del self._table().documents[id]
        return len(ids)

    def refresh(self) -> None: ...

    def optimise(self) -> None: ...

    @contextmanager
    def loading(self) -> Iterator[None]:
        yield

    # a new model without downtime

    def fixed(self) -> MemoryIndex:
        return MemoryIndex(self.url, self._place, self._table().name)

    def successor(self, spec: Spec) -> MemoryIndex:
        with self._place.writing:
            return MemoryIndex(self.url, self._place, self._place.begin(spec).name, self._table().name)

    def former(self) -> MemoryIndex | None:
        before = self._place.history[1:2]
        return MemoryIndex(self.url, self._place, before[0]) if before else None

    @contextmanager
    def moving(self, target: Index) -> Iterator[Callable[[], bool]]:
        with self._moving_alone():
            yield lambda: self._place.history[0] == self._table().name

    @contextmanager
    def frozen(self) -> Iterator[Callable[[], bool]]:
        with self._place.writing:
            yield lambda: True

    def go_live(self) -> None:
        with self._place.writing:
            self._require_live(self._instead_of)
            self._place.history.insert(0, self._table().name)

    def rollback(self) -> str:
        with self._place.writing:
            self._require_live(self._pinned)
            if len(self._place.history) < 2:
                raise IndexUnusable(f"{self.url} has no index before {self._table().name} to go back to")
            self._place.history.pop(0)
            return self._place.history[0]

    def drop_former(self) -> list[str]:
        with self._moving_alone(), self._place.writing:
            live = self._place.history[0]
            dropped = [name for name in self._place.tables if name != live]
            self._place.tables, self._place.history = {live: self._place.tables[live]}, [live]
            return dropped

    @contextmanager
    def _moving_alone(self) -> Iterator[None]:
        if not self._place.moving.acquire(blocking=False):
            raise IndexUnusable(f"{self.url} is being moved to another model; wait for its end")
        try:
            yield
        finally:
            self._place.moving.release()

    def _require_live(self, expected: str | None) -> None:
        if expected and self._place.history[0] != expected:
            raise IndexUnusable(f"{self.url} answers from {self._place.history[0]} by now; nothing was changed")
