"""Companies and their vectors in Elasticsearch."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from elasticsearch import Elasticsearch

from index.base import Facets, Hit, Index, Known, Outcome, Spec, Status, Suggestion, check_query, check_size
from index.document import EVERYTHING, FILTERABLE, Document, Filters, Vector, fold, is_unicode
from index.elastic import answers, queries
from index.elastic.access import REQUEST_SECONDS, Access, Address, connect
from index.elastic.bulk import Bulk
from index.elastic.loads import RENEW_SECONDS, Loads, left, new_loader
from index.elastic.mapping import COLUMNS, KNOWN_COLUMNS, to_document, to_known
from index.elastic.pages import by_id, walk
from index.elastic.patience import SECONDS
from index.elastic.places import Place, Places
from index.errors import IndexMissing, IndexUnusable, WrongModel
from index.excluded import narrowed, widened
from index.fusion import Candidate, may_be_a_name
from index.settle import settle

OPENING_SECONDS = 15.0  # a wrong address should be told soon; work that has begun waits longer
READER_SECONDS = 1.0  # an alias that moved is followed as soon as that by who only reads; others ask each time
ANSWER_SECONDS = 10.0  # of one request where somebody waits: a server that hangs is as good as away
MERGING_SECONDS = 6 * 3600.0
COMPANIES_PER_SEGMENT = 1_000_000


def open_elastic(url: str, create: Spec | None, patience: float | None = None) -> ElasticIndex:
    address, access = Address.parse(url), Access.from_environment()
    try:
        client = connect(address, access, REQUEST_SECONDS if patience is None else ANSWER_SECONDS)
    except (ValueError, OSError) as error:
        raise IndexUnusable(f"{url} cannot be used as an index: {error}") from error
    places = Places(url, client, address.alias)
    places.patience = OPENING_SECONDS
    if places.live() is None:
        if create is None:
            raise IndexMissing(url)
        name = places.begun(create)
        places.create(name, create, _now())
        places.claim(name)
    index = ElasticIndex(places)
    if create:
        index.require(create.model)
    index._tend_loads(index._place())
    if patience is not None:
        places.memory = READER_SECONDS
    places.patience = SECONDS if patience is None else patience
    return index


class ElasticIndex(Index):
    """Follows the alias, or stays with the physical index that is named. Safe to share between threads."""

    def __init__(self, places: Places, name: str | None = None):
        self.url = places.url
        self._places, self._pinned = places, name
        self._client: Elasticsearch = places.client
        self._bulk = Bulk(self.url, self._client)
        self._loads: dict[str, tuple[str, float]] = {}  # of each loader: where, and when it last said so

    # writing

    def write(self, documents: Sequence[Document]) -> list[Outcome]:
        place = self._place()
        for model in {one.model for one in documents if not one.deleted}:
            if model != place.spec.model:
                raise WrongModel(self.url, place.spec.model, model)
        self._tend_loads(place)
        times = Counter(one.id for one in documents)
        # Versions are compared by the server; what is stored matters here only where it decides more than that.
        asked = [one.id for one in documents if times[one.id] > 1 or (one.embedding is None and not one.deleted)]
        known, vectors = self._stored(place, asked)
        outcomes, changed = settle(documents, known, vectors, place.spec.dimension)
        results = self._bulk.write(place.name, changed, _now())
        # What came before a document that the server refused was never sent: now each by itself.
        apart = {id for id, result in results.items() if result.status == "failed" and times[id] > 1}
        return [
            self.write([document])[0]
            if document.id in apart and outcome.status != "failed"
            else _final(outcome, results)
            for document, outcome in zip(documents, outcomes, strict=True)
        ]

    def purge(self, older_than_seconds: float) -> int:
        self.refresh()
        place, query = self._place(), queries.old_tombstones(_now() - round(older_than_seconds * 1e6))
        return sum(self._bulk.delete(place.name, page) for page in walk(self._places, place.name, query, 1000, False))

    def refresh(self) -> None:
        name = self._place().name
        self._places.ask(lambda: self._client.indices.refresh(index=name))

    def optimise(self) -> None:
        name, live = self._place().name, self.status().live
        segments = 1 + live // COMPANIES_PER_SEGMENT  # each has a graph of its own to be searched
        patient = self._client.options(request_timeout=MERGING_SECONDS)
        self._places.ask(lambda: patient.indices.forcemerge(index=name, max_num_segments=segments))

    @contextmanager
    def loading(self) -> Iterator[None]:
        loader, name = new_loader(), self._place().name
        loads = Loads(self.url, self._client, name)
        loads.begin(loader, time.time())
        self._loads[loader] = (name, time.time())
        try:
            yield
        finally:
            del self._loads[loader]
            loads.end(loader, time.time())
        self._places.ask(lambda: self._client.indices.refresh(index=name))

    def _tend_loads(self, place: Place) -> None:
        """Says that its own go on, and ends those that have died."""
        now = time.time()
        for loader, (name, since) in list(self._loads.items()):
            if now - since > RENEW_SECONDS:
                Loads(self.url, self._client, name).begin(loader, now)
                self._loads[loader] = (name, now)
        note = place.meta.get("loading")
        if note and left(note, "", now) != note:
            Loads(self.url, self._client, place.name).end("", now)

    # a new model without downtime

    def successor(self, spec: Spec) -> ElasticIndex:
        name, companies = self._places.begun(spec), self.status().live
        self._places.create(name, spec, _now(), companies)
        return ElasticIndex(self._places, name)

    def go_live(self) -> None:
        self._places.go_live(self._place().name)

    def rollback(self) -> str:
        former = self._places.go_back()
        if former is None:
            raise IndexUnusable(f"{self.url} has no index before {self._place().name} to go back to")
        return former

    def former(self) -> ElasticIndex | None:
        name = self._places.former()
        return ElasticIndex(self._places, name) if name else None

    # reading

    def spec(self) -> Spec:
        return self._place().spec

    def status(self) -> Status:
        """Of all that was written, searchable yet or not."""
        self.refresh()
        place = self._place()
        found = self._search(place, queries.totals())
        stats = self._places.ask(lambda: self._client.indices.stats(index=place.name, metric="store"))
        return answers.status(place, found, stats["_all"]["total"]["store"]["size_in_bytes"])

    def known(self, ids: Iterable[str]) -> dict[str, Known]:
        return {id: to_known(source) for id, source in by_id(self._places, self._place().name, ids, KNOWN_COLUMNS)}

    def get_many(self, ids: Iterable[str]) -> dict[str, Document]:
        found = by_id(self._places, self._read_from().name, ids, [*COLUMNS, "embedding"])
        return {id: to_document(id, source) for id, source in found if not source["deleted"]}

    def scan(self, batch_size: int = 1000, tombstones: bool = False) -> Iterator[list[Document]]:
        self.refresh()
        columns = [*COLUMNS, "embedding"]
        for page in walk(self._places, self._place().name, queries.everything(tombstones), batch_size, columns):
            yield [to_document(hit["_id"], hit["_source"]) for hit in page]

    def facets(self, filters: Filters = EVERYTHING, top: int = 100) -> Facets:
        found = self._search(self._read_from(), queries.facets(filters, top))["aggregations"]
        return {name: [(one["key"], one["doc_count"]) for one in found[name]["buckets"]] for name in FILTERABLE}

    def suggest(self, prefix: str, k: int = 10) -> list[Suggestion]:
        typed = fold(prefix)
        if not typed or not is_unicode(typed):
            return []
        found = self._search(self._read_from(), queries.named_like(typed, k))
        return [Suggestion(hit["_id"], hit["_source"]["name"]) for hit in found["hits"]["hits"]]

    # searching

    def nearest(
        self, vector: Vector, k: int, *, model: str, filters: Filters = EVERYTHING, exact: bool = False
    ) -> list[Hit]:
        """At most 10,000, unless exact."""
        place = self._read_from()
        check_query(self.url, place.spec, model, vector, k)
        if exact:
            # Here, and not by a script there: not every server runs scripts. All vectors that match are read.
            pages = walk(self._places, place.name, queries.matching(filters), 1000, [*COLUMNS, "embedding"])
            return answers.nearest(pages, vector, k)
        found = self._search(place, queries.nearest(vector, *widened(k, filters), place.kind))
        return narrowed(answers.by_cosine(found), k, filters)

    def search(self, text: str, k: int, *, filters: Filters = EVERYTHING) -> list[Hit]:
        """At most 10,000."""
        check_size(k)
        query = queries.by_words(text.encode(errors="replace").decode(), k, filters)
        return [] if query is None else answers.by_words(self._search(self._read_from(), query))

    def nearest_candidates(
        self, vector: Vector, k: int, *, model: str, filters: Filters = EVERYTHING
    ) -> list[Candidate]:
        place = self._read_from()
        check_query(self.url, place.spec, model, vector, k)
        query = queries.candidates(queries.nearest(vector, *widened(k, filters), place.kind))
        found = answers.near_candidates(self._search(place, query))
        return [one for one in found if one.id not in filters.exclude_ids][:k]

    def worded_candidates(self, text: str, k: int, *, filters: Filters = EVERYTHING) -> list[Candidate]:
        return self._candidates(queries.by_words(text.encode(errors="replace").decode(), k, filters))

    def typed_candidates(
        self, text: str, k: int, *, filters: Filters = EVERYTHING
    ) -> tuple[list[Candidate], list[Candidate]]:
        if not is_unicode(text) or not may_be_a_name(text):
            return self.worded_candidates(text, k, filters=filters), []
        return answers.apart(self._candidates(queries.by_words_or_name(text, k, filters)))

    def _candidates(self, query: dict[str, Any] | None) -> list[Candidate]:
        return [] if query is None else answers.candidates(self._search(self._read_from(), queries.candidates(query)))

    def _place(self) -> Place:
        place = self._places.at(self._pinned) if self._pinned else self._places.live()
        if place is None:
            raise IndexMissing(self.url)
        return place

    def _read_from(self) -> Place:
        if self._pinned:
            return self._place()
        place = self._places.remembered()
        if place is None:
            raise IndexMissing(self.url)
        return place

    def _stored(self, place: Place, ids: Iterable[str]) -> tuple[dict[str, Known], dict[str, Vector]]:
        found = dict(by_id(self._places, place.name, ids, [*COLUMNS, "fields_hash", "embedding"]))
        documents = {id: to_document(id, source) for id, source in found.items()}
        vectors = {id: one.embedding for id, one in documents.items() if one.embedding is not None}
        return {id: to_known(source) for id, source in found.items()}, vectors

    def _search(self, place: Place, body: dict[str, Any]) -> Any:
        return self._places.ask(lambda: self._client.search(index=place.name, body=body))


def _final(outcome: Outcome, results: dict[str, Outcome]) -> Outcome:
    """As settled here, unless the server knew better of the newest document with that id."""
    result = results.get(outcome.id)
    overruled = result and result.status in ("stale", "failed") and outcome.status in ("indexed", "deleted")
    return result if result and overruled else outcome


def _now() -> int:
    return time.time_ns() // 1000
