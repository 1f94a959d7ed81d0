"""Companies and their vectors in Elasticsearch."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from elasticsearch import NotFoundError

from index.base import Index, Known, Outcome, Spec
from index.document import Document, Vector
from index.elastic import queries
from index.elastic.cluster.aliases import Aliases, PhysicalIndex
from index.elastic.cluster.connection import REQUEST_SECONDS, Address, Credentials, connect
from index.elastic.cluster.meta import Meta
from index.elastic.cluster.retry import SECONDS, Retry
from index.elastic.mapping import COLUMNS, KNOWN_COLUMNS, to_document, to_known
from index.elastic.pages import Gone, by_id, read, walk
from index.elastic.reading import Reading, Result
from index.elastic.writing.bulk import Bulk, Closed
from index.elastic.writing.bulk_load import BulkLoad, left
from index.elastic.writing.moves import Moves
from index.errors import IndexMissing, IndexUnusable, WrongModel
from index.merge_versions import merge_versions

OPENING_SECONDS = 15.0  # a wrong address should be told soon; work that has begun waits longer
READER_SECONDS = 1.0  # an alias that moved is followed as soon as that by who only reads; others ask each time
READER_REQUEST_SECONDS = 10.0  # of one request where somebody waits: a server that hangs is as good as away
MERGING_SECONDS = 6 * 3600.0
LOOK_SECONDS = 5.0  # between two looks of a writer whether those that load are alive: each asks for the server's time
COMPANIES_PER_SEGMENT = 1_000_000


def open_elastic(url: str, create: Spec | None, retry_seconds: float | None = None) -> ElasticIndex:
    address, credentials = Address.parse(url), Credentials.from_environment()
    try:
        client = connect(address, credentials, REQUEST_SECONDS if retry_seconds is None else READER_REQUEST_SECONDS)
    except (ValueError, OSError) as error:
        raise IndexUnusable(f"{url} cannot be used as an index: {error}") from error
    aliases = Aliases(url, client, address.alias)
    aliases.retry_seconds = OPENING_SECONDS
    if aliases.live() is None:
        if create is None:
            raise IndexMissing(url)
        name = aliases.begun(create)
        aliases.create(name, create, _now())
        aliases.claim(name)
    index = ElasticIndex(aliases)
    if create:
        index.require(create.model)
    index._end_dead_loads(index._physical())
    if retry_seconds is not None:
        aliases.cache_seconds = READER_SECONDS
    aliases.retry_seconds = SECONDS if retry_seconds is None else retry_seconds
    return index


class ElasticIndex(Reading):
    """Safe to share between threads."""

    def __init__(self, aliases: Aliases, name: str | None = None, instead_of: str | None = None):
        super().__init__(aliases, name)
        self._instead_of = instead_of  # the one that was live when this one was begun
        self._bulk = Bulk(self.url, self._client)
        self._looked = float("-inf")

    # writing

    def write(self, documents: Sequence[Document], force: bool = False) -> list[Outcome]:
        written = _now()
        return self._at_live(lambda physical: self._write(physical, documents, written, force))

    def _write(
        self, physical: PhysicalIndex, documents: Sequence[Document], written: int, force: bool
    ) -> list[Outcome]:
        for model in {one.model for one in documents if not one.deleted}:
            if model != physical.spec.model:
                raise WrongModel(self.url, physical.spec.model, model)
        self._end_dead_loads(physical)
        times = Counter(one.id for one in documents)
        # Versions are compared by the server; what is stored matters here only where it decides more than that.
        asked = [one.id for one in documents if times[one.id] > 1 or (one.embedding is None and not one.deleted)]
        known, vectors = self._stored(physical, asked)
        outcomes, changed = merge_versions(documents, known, vectors, physical.spec.dimension, force)
        results = self._bulk.write(physical.name, changed, written, force, lambda: self._check(physical))
        # What came before a document that the server refused was never sent: now each by itself.
        apart = {id for id, result in results.items() if result.status == "failed" and times[id] > 1}
        return [
            self._write(physical, [document], written, force)[0]
            if document.id in apart and outcome.status != "failed"
            else _final(outcome, results)
            for document, outcome in zip(documents, outcomes, strict=True)
        ]

    def purge(self, older_than_seconds: float) -> int:
        removed, query = 0, queries.old_tombstones(_now() - round(older_than_seconds * 1e6))

        def remove(physical: PhysicalIndex) -> None:
            nonlocal removed
            self.refresh()
            for page in walk(self._aliases, physical.name, query, 1000, False):
                if not physical.meta.get("purged"):  # first: what is missing from here may have been deleted
                    Meta(self.url, self._client, physical.name).write("purged", True)
                    physical.meta["purged"] = True
                removed += self._bulk.delete(physical.name, page, lambda: self._check(physical))

        self._at_live(remove)
        return removed

    def remove(self, known: Mapping[str, Known]) -> int:
        def remove(physical: PhysicalIndex) -> int:
            ids = list(known)
            if not ids:
                return 0
            retry = Retry(self.url, self._aliases.retry_seconds)
            found = read(retry, self._client, physical.name, ids, KNOWN_COLUMNS)
            there = [one for one in found if one.get("found")]
            same = [one for one in there if to_known(one["_source"]).order == known[one["_id"]].order]
            return self._bulk.delete(physical.name, same, lambda: self._check(physical))

        return self._at_live(remove)

    def optimise(self) -> None:
        name, live = self._physical().name, self.status().live
        segments = 1 + live // COMPANIES_PER_SEGMENT  # each has a graph of its own to be searched
        patient = self._client.options(request_timeout=MERGING_SECONDS)
        self._aliases.call(lambda: patient.indices.forcemerge(index=name, max_num_segments=segments))

    @contextmanager
    def loading(self) -> Iterator[None]:
        name = self._physical().name
        with BulkLoad(self.url, self._client, name).running():
            yield
        self._aliases.call(lambda: self._client.indices.refresh(index=name))

    def _end_dead_loads(self, physical: PhysicalIndex) -> None:
        note = physical.meta.get("loading")
        if not note or time.monotonic() - self._looked < LOOK_SECONDS:
            return
        self._looked = time.monotonic()
        loads = BulkLoad(self.url, self._client, physical.name)
        now = loads.now()
        if left(note, "", now) != note:
            loads.end("", now)

    # a new model without downtime

    def fixed(self) -> ElasticIndex:
        return ElasticIndex(self._aliases, self._physical().name)

    def successor(self, spec: Spec) -> ElasticIndex:
        live, name, companies = self._physical().name, self._aliases.begun(spec), self.status().live
        self._aliases.create(name, spec, _now(), companies)
        return ElasticIndex(self._aliases, name, live)

    @contextmanager
    def moving(self, target: Index) -> Iterator[Callable[[], bool]]:
        assert isinstance(target, ElasticIndex)
        with Moves(self._aliases, self._physical().name).to(target._physical().name) as holds:
            yield holds

    @contextmanager
    def frozen(self) -> Iterator[Callable[[], bool]]:
        moves = Moves(self._aliases, self._physical().name)
        with moves.frozen():
            yield moves.is_frozen

    def go_live(self) -> None:
        self._aliases.go_live(self._physical().name, self._instead_of)

    def rollback(self) -> str:
        former = self._aliases.go_back(self._pinned)
        if former is None:
            raise IndexUnusable(f"{self.url} has no index before {self._physical().name} to go back to")
        return former

    def former(self) -> ElasticIndex | None:
        name = self._aliases.former()
        return ElasticIndex(self._aliases, name) if name else None

    def drop_former(self) -> list[str]:
        live, names = self._physical().name, self._aliases.names()
        for name in names:
            Moves(self._aliases, name).require_none()
        dropped = [name for name in names if name != live]
        for name in dropped:
            self._aliases.drop(name)
        return dropped

    def _at_live(self, work: Callable[[PhysicalIndex], Result]) -> Result:
        """Where the index is closed under it, at the live one once more: this one, thawed, or its successor."""
        retry = Retry(self.url)
        while True:
            physical = self._physical()
            try:
                return work(physical)
            except (Closed, Gone, NotFoundError) as closed:
                if not self._pinned and self._physical().name == physical.name:
                    self._aliases.let_write(physical.name)
                    Moves(self._aliases, physical.name).thaw_what_died()
                retry.pause(str(closed))

    def _check(self, physical: PhysicalIndex) -> None:
        """Before anything is sent again: a pause is long enough for a move to end."""
        if self._physical().name != physical.name:
            raise Closed(f"{physical.name} is not the live index any more")

    def _stored(self, physical: PhysicalIndex, ids: Iterable[str]) -> tuple[dict[str, Known], dict[str, Vector]]:
        found = dict(by_id(self._aliases, physical.name, ids, [*COLUMNS, "fields_hash", "embedding"]))
        documents = {id: to_document(id, source) for id, source in found.items()}
        vectors = {id: one.embedding for id, one in documents.items() if one.embedding is not None}
        return {id: to_known(source) for id, source in found.items()}, vectors


def _final(outcome: Outcome, results: dict[str, Outcome]) -> Outcome:
    """As settled here, unless the server knew better of the newest document with that id."""
    result = results.get(outcome.id)
    overruled = result and result.status in ("stale", "failed") and outcome.status in ("indexed", "deleted")
    return result if result and overruled else outcome


def _now() -> int:
    return time.time_ns() // 1000
