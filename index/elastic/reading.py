"""What is read from an index in Elasticsearch, and searched there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from elasticsearch import Elasticsearch, NotFoundError

from index.base import Facets, Hit, Index, Known, Spec, Status, Suggestion
from index.checks import check_query, check_size
from index.document import EVERYTHING, FILTERABLE, Document, Filters, Vector, fold, is_unicode
from index.elastic import queries, results
from index.elastic.cluster.aliases import Aliases, PhysicalIndex
from index.elastic.mapping import COLUMNS, KNOWN_COLUMNS, to_document, to_known
from index.elastic.pages import Gone, by_id, walk
from index.errors import IndexMissing
from index.ranking.fusion import Candidate, may_be_a_name
from index.ranking.post_filter import narrowed, widened

Result = TypeVar("Result")


class Reading(Index):
    """Follows the alias, or stays with the physical index that is named."""

    def __init__(self, aliases: Aliases, name: str | None = None):
        self.url = aliases.url
        self._aliases, self._pinned = aliases, name
        self._client: Elasticsearch = aliases.client

    def refresh(self) -> None:
        name = self._physical().name
        self._aliases.call(lambda: self._client.indices.refresh(index=name))

    def spec(self) -> Spec:
        return self._physical().spec

    def status(self) -> Status:
        """Of all that was written, searchable yet or not."""
        self.refresh()
        physical = self._physical()
        found = self._search(physical, queries.totals())
        stats = self._aliases.call(lambda: self._client.indices.stats(index=physical.name, metric="store"))
        return results.status(physical, found, stats["_all"]["total"]["store"]["size_in_bytes"])

    def known(self, ids: Iterable[str]) -> dict[str, Known]:
        asked = list(ids)
        live = self._physical()
        found = self._query(lambda physical: list(by_id(self._aliases, physical.name, asked, KNOWN_COLUMNS)), live)
        return {id: to_known(source) for id, source in found}

    def get_many(self, ids: Iterable[str]) -> dict[str, Document]:
        columns, asked = [*COLUMNS, "embedding"], list(ids)
        found = self._query(lambda physical: list(by_id(self._aliases, physical.name, asked, columns)))
        return {id: to_document(id, source) for id, source in found if not source["deleted"]}

    def mark(self) -> int:
        """The number up to which the shard's writes are all done; a refresh after this makes them visible."""
        name = self._physical().name
        wanted = "indices.*.shards.*.seq_no.global_checkpoint"
        stats = self._aliases.call(
            lambda: self._client.indices.stats(index=name, level="shards", metric="docs", filter_path=wanted)
        )
        copies = [copy for shard in stats["indices"][name]["shards"].values() for copy in shard]
        return min(int(copy["seq_no"]["global_checkpoint"]) for copy in copies)

    def scan(
        self, batch_size: int = 1000, tombstones: bool = False, since: int | None = None
    ) -> Iterator[list[Document]]:
        self.refresh()
        columns, query = [*COLUMNS, "embedding"], queries.everything(tombstones, since)
        for page in walk(self._aliases, self._physical().name, query, batch_size, columns):
            yield [to_document(hit["_id"], hit["_source"]) for hit in page]

    def scan_known(self, batch_size: int = 1000) -> Iterator[dict[str, Known]]:
        self.refresh()
        for page in walk(self._aliases, self._physical().name, queries.everything(True), batch_size, KNOWN_COLUMNS):
            yield {hit["_id"]: to_known(hit["_source"]) for hit in page}

    def facets(self, filters: Filters = EVERYTHING, top: int = 100) -> Facets:
        found = self._query(lambda physical: self._search(physical, queries.facets(filters, top)))["aggregations"]
        return {name: [(one["key"], one["doc_count"]) for one in found[name]["buckets"]] for name in FILTERABLE}

    def suggest(self, prefix: str, k: int = 10) -> list[Suggestion]:
        typed = fold(prefix)
        if not typed or not is_unicode(typed):
            return []
        found = self._query(lambda physical: self._search(physical, queries.named_like(typed, k)))
        return [Suggestion(hit["_id"], hit["_source"]["name"]) for hit in found["hits"]["hits"]]

    # searching

    def nearest(
        self, vector: Vector, k: int, *, model: str, filters: Filters = EVERYTHING, exact: bool = False
    ) -> list[Hit]:
        """At most 10,000, unless exact."""

        def ask(physical: PhysicalIndex) -> list[Hit]:
            check_query(self.url, physical.spec, model, vector, k)
            if exact:
                # Here, and not by a script there: not every server runs scripts. All vectors that match are read.
                pages = walk(self._aliases, physical.name, queries.matching(filters), 1000, [*COLUMNS, "embedding"])
                return results.nearest(pages, vector, k)
            found = self._search(physical, queries.nearest(vector, *widened(k, filters), physical.kind))
            return narrowed(results.by_cosine(found), k, filters)

        return self._query(ask)

    def search(self, text: str, k: int, *, filters: Filters = EVERYTHING) -> list[Hit]:
        """At most 10,000."""
        check_size(k)
        query = queries.by_words(text.encode(errors="replace").decode(), k, filters)
        return [] if query is None else results.by_words(self._query(lambda physical: self._search(physical, query)))

    def nearest_candidates(
        self, vector: Vector, k: int, *, model: str, filters: Filters = EVERYTHING
    ) -> list[Candidate]:
        def ask(physical: PhysicalIndex) -> Any:
            check_query(self.url, physical.spec, model, vector, k)
            query = queries.nearest(vector, *widened(k, filters), physical.kind)
            return self._search(physical, queries.candidates(query))

        found = results.near_candidates(self._query(ask))
        return [one for one in found if one.id not in filters.exclude_ids][:k]

    def worded_candidates(self, text: str, k: int, *, filters: Filters = EVERYTHING) -> list[Candidate]:
        return self._candidates(queries.by_words(text.encode(errors="replace").decode(), k, filters))

    def typed_candidates(
        self, text: str, k: int, *, filters: Filters = EVERYTHING
    ) -> tuple[list[Candidate], list[Candidate]]:
        if not is_unicode(text) or not may_be_a_name(text):
            return self.worded_candidates(text, k, filters=filters), []
        return results.apart(self._candidates(queries.by_words_or_name(text, k, filters)))

    def _candidates(self, query: dict[str, Any] | None) -> list[Candidate]:
        if query is None:
            return []
        return results.candidates(self._query(lambda physical: self._search(physical, queries.candidates(query))))

    def _physical(self) -> PhysicalIndex:
        physical = self._aliases.at(self._pinned) if self._pinned else self._aliases.live()
        if physical is None:
            raise IndexMissing(self.url)
        return physical

    def _query(self, ask: Callable[[PhysicalIndex], Result], physical: PhysicalIndex | None = None) -> Result:
        """From the index that was live a moment ago, or, where that has been dropped, from the one that is."""
        physical = physical or self._read_from()
        try:
            return ask(physical)
        except (NotFoundError, Gone):
            live = self._physical()
            if live.name == physical.name:
                raise
            return ask(live)

    def _read_from(self) -> PhysicalIndex:
        if self._pinned:
            return self._physical()
        physical = self._aliases.cached()
        if physical is None:
            raise IndexMissing(self.url)
        return physical

    def _search(self, physical: PhysicalIndex, body: dict[str, Any]) -> Any:
        return self._aliases.call(lambda: self._client.search(index=physical.name, body=body))
