"""What is read from the embedded index, and searched there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import chain

import lancedb
import pyarrow as pa
import pyarrow.compute as pc
from lancedb.query import MultiMatchQuery
from lancedb.table import Table

from index.base import Facets, Hit, Index, Known, Spec, Status, Suggestion
from index.checks import check_query, check_size
from index.document import EVERYTHING, FILTERABLE, Document, Filters, Vector, fold, is_unicode
from index.errors import IndexMissing
from index.lance import maintenance, results, rows
from index.lance.directory import Directory
from index.lance.name_cache import NameCache, alike, suggestions
from index.lance.queries import TableQueries
from index.lance.where import LIVE, among, matching, matching_vectors
from index.ranking.fusion import Candidate, may_be_a_name
from index.ranking.post_filter import narrowed, widened

IDS_PER_QUERY = 5000  # a condition of that many literals is parsed in some 40 ms
NAME_COUNTS = 2.0
CLOCK_MAY_STEP = 3_600_000_000  # microseconds, back: so much more is scanned than was written since a mark


class Reading(Index):
    """Follows the live table, or stays with the one that is named."""

    def __init__(self, url: str, directory: Directory, table: str | None = None):
        self.url = url
        self._directory, self._pinned = directory, table
        self._opened: tuple[str, Table] | None = None
        self._queries = TableQueries(directory.path)
        self._names = NameCache(self._queries)
        # Every read looks for the newest state: others write too.
        self._database = lancedb.connect(str(directory.path), read_consistency_interval=timedelta(0))

    def refresh(self) -> None:
        """Every read sees every write already."""

    def spec(self) -> Spec:
        return self._queries.spec(self._name())

    def status(self) -> Status:
        name, table = self._name(), self._table()
        times = self._queries.select(name, "", ["version", "indexed_at", "deleted"])
        spec, lists = rows.spec_of(table.schema), maintenance.lists(table.list_indices())
        live = table.count_rows(LIVE)
        return Status(
            model=spec.model,
            dimension=spec.dimension,
            physical=name,
            created_at=rows.created_at(table.schema),
            live=live,
            tombstones=times.num_rows - live,
            newest_version=pc.max(times["version"]).as_py(),
            newest_write=pc.max(times["indexed_at"]).as_py(),
            bytes=self._directory.bytes_of(name),
            vectors=f"approximate, IVF_SQ of {lists} lists" if lists else "exact",
            purged=self._directory.was_purged(name),
        )

    def known(self, ids: Iterable[str]) -> dict[str, Known]:
        return dict(chain.from_iterable(rows.to_known(found).items() for found in self._by_id(ids, rows.KNOWN_COLUMNS)))

    def get_many(self, ids: Iterable[str]) -> dict[str, Document]:
        found = self._by_id(ids, [*rows.COLUMNS, "embedding"])
        return {one.id: one for page in found for one in rows.to_documents(page) if not one.deleted}

    def mark(self) -> int:
        return rows.now()

    def scan(
        self, batch_size: int = 1000, tombstones: bool = False, since: int | None = None
    ) -> Iterator[list[Document]]:
        wanted = [] if tombstones else [LIVE]
        if since is not None:
            wanted.append(f"indexed_at >= {since - CLOCK_MAY_STEP}")
        with self._directory.reading_past():
            # A handle of its own: going back to a state would take all readers of a shared one along.
            table = lancedb.connect(str(self._directory.path)).open_table(self._name())
            table.checkout(table.version)
            query = table.search().select([*rows.COLUMNS, "embedding"])
            query = query.where(" AND ".join(wanted)) if wanted else query
            for batch in query.to_batches(batch_size=batch_size):
                if batch.num_rows:
                    yield list(rows.to_documents(batch))

    def scan_known(self, batch_size: int = 1000) -> Iterator[dict[str, Known]]:
        found = self._queries.select(self._name(), "", rows.KNOWN_COLUMNS)
        for start in range(0, found.num_rows, batch_size):
            yield rows.to_known(found.slice(start, batch_size))

    def facets(self, filters: Filters = EVERYTHING, top: int = 100) -> Facets:
        found = self._queries.select(self._name(), matching(filters), list(FILTERABLE))
        return results.facets(found, top)

    def suggest(self, prefix: str, k: int = 10) -> list[Suggestion]:
        typed = fold(prefix)
        if not typed or not is_unicode(typed):
            return []
        return suggestions(self._names.of(self._table()), typed, k)

    # searching

    def nearest(
        self, vector: Vector, k: int, *, model: str, filters: Filters = EVERYTHING, exact: bool = False
    ) -> list[Hit]:
        table = self._name()
        check_query(self.url, self._queries.spec(table), model, vector, k)
        more, fewer = widened(k, filters)
        found = self._queries.nearest(table, vector, more, matching_vectors(fewer), exact)
        return narrowed(results.by_cosine(found), k, filters)

    def search(self, text: str, k: int, *, filters: Filters = EVERYTHING) -> list[Hit]:
        check_size(k)
        return results.by_words(self._queries.search(self._name(), _match(text), k, matching(filters)))

    def nearest_candidates(
        self, vector: Vector, k: int, *, model: str, filters: Filters = EVERYTHING
    ) -> list[Candidate]:
        table = self._name()
        check_query(self.url, self._queries.spec(table), model, vector, k)
        more, fewer = widened(k, filters)
        found = self._queries.nearest(table, vector, more, matching_vectors(fewer), False, rows.CANDIDATE_COLUMNS)
        return [one for one in results.candidates(found) if one.id not in filters.exclude_ids][:k]

    def worded_candidates(self, text: str, k: int, *, filters: Filters = EVERYTHING) -> list[Candidate]:
        where = matching(filters)
        return results.candidates(self._queries.search(self._name(), _match(text), k, where, rows.CANDIDATE_COLUMNS))

    def typed_candidates(
        self, text: str, k: int, *, filters: Filters = EVERYTHING
    ) -> tuple[list[Candidate], list[Candidate]]:
        return self.worded_candidates(text, k, filters=filters), self._named(text, filters)

    def _named(self, text: str, filters: Filters) -> list[Candidate]:
        if not is_unicode(text) or not may_be_a_name(text):
            return []
        found = alike(self._names.of(self._table()), text)
        if found.num_rows and replace(filters, exclude_ids=()) != EVERYTHING:
            where = f"{among('id', found['id'].to_pylist())} AND {matching(filters)}"
            found = self._queries.select(self._name(), where, rows.CANDIDATE_COLUMNS)
        return [one for one in results.candidates(found) if one.id not in filters.exclude_ids]

    def _name(self) -> str:
        name = self._pinned or self._directory.live()
        if name is None:
            raise IndexMissing(self.url)
        return name

    def _table(self) -> Table:
        name = self._name()
        if self._opened is None or self._opened[0] != name:
            self._opened = (name, self._database.open_table(name))
        return self._opened[1]

    def _by_id(self, ids: Iterable[str], columns: list[str]) -> Iterator[pa.Table]:
        table, asked = self._name(), [id for id in dict.fromkeys(ids) if is_unicode(id)]
        for start in range(0, len(asked), IDS_PER_QUERY):
            yield self._queries.select(table, among("id", asked[start : start + IDS_PER_QUERY]), columns)


def _match(text: str) -> MultiMatchQuery:
    words = text.encode(errors="replace").decode()
    return MultiMatchQuery(words, ["name", "description"], boosts=[NAME_COUNTS, 1.0])  # type: ignore[call-arg]
