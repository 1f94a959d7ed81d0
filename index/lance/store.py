"""The embedded index: LanceDB in a local directory, for a laptop or one machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from itertools import chain
from pathlib import Path

import lancedb
import pyarrow as pa
import pyarrow.compute as pc
from lancedb.query import MultiMatchQuery
from lancedb.table import Table

from index.base import Facets, Hit, Index, Known, Outcome, Spec, Status, Suggestion, check_query, check_size
from index.document import EVERYTHING, FILTERABLE, Document, Filters, Vector, fold, is_unicode
from index.errors import IndexMissing, IndexUnusable
from index.excluded import narrowed, widened
from index.fusion import Candidate, may_be_a_name
from index.lance import answers, rows, upkeep
from index.lance.directory import Directory
from index.lance.names import Names, alike, suggestions
from index.lance.reader import Reader
from index.lance.where import LIVE, among, matching, matching_vectors
from index.settle import settle

IDS_PER_QUERY = 5000  # a condition of that many literals is parsed in some 40 ms
NAME_COUNTS = 2.0


def open_lance(url: str, path: Path, create: Spec | None) -> LanceIndex:
    directory = Directory(path)
    try:
        if create:
            path.mkdir(parents=True, exist_ok=True)
            with directory.writing():
                if directory.live() is None:
                    LanceIndex(url, directory, directory.begun(create)).create(create).go_live()
        elif path.exists() and not path.is_dir():
            raise IndexUnusable(f"{url} is a file; an embedded index is a directory")
        elif directory.live() is None:
            raise IndexMissing(url)
    except OSError as error:
        raise IndexUnusable(f"{url} cannot be used as an index: {error}") from error
    index = LanceIndex(url, directory)
    if create:
        index.require(create.model)
    return index


class LanceIndex(Index):
    """Follows the live table, or stays with the one that is named. Safe to share between threads, not to fork with."""

    def __init__(self, url: str, directory: Directory, table: str | None = None):
        self.url = url
        self._directory, self._pinned = directory, table
        self._loading = 0
        self._opened: tuple[str, Table] | None = None
        self._reader = Reader(directory.path)
        self._names = Names(self._reader)
        # Every read looks for the newest state: others write too.
        self._database = lancedb.connect(str(directory.path), read_consistency_interval=timedelta(0))

    def create(self, spec: Spec) -> LanceIndex:
        """With the lock held; what a dead process left half made is completed."""
        try:
            table = self._table()
        except ValueError:  # LanceDB's word for a table that is not there, or has no state yet
            table = self._database.create_table(self._name(), schema=rows.schema(spec))
        upkeep.create_indices(table)
        return self

    # writing

    def write(self, documents: Sequence[Document]) -> list[Outcome]:
        with self._directory.writing():  # what is known cannot change until it is written
            for model in {one.model for one in documents if not one.deleted}:
                self.require(model)
            table = self._table()
            known = self.known(one.id for one in documents)
            keeping = [one.id for one in documents if one.embedding is None and one.id in known and not one.deleted]
            vectors = {row.id: row.embedding for row in self.get_many(keeping).values() if row.embedding is not None}
            outcomes, changed = settle(documents, known, vectors, self.spec().dimension)
            if changed:
                # The lock rules; the condition is for whoever writes to the table without it.
                merge = table.merge_insert("id").when_matched_update_all(where="target.version < source.version")
                merge.when_not_matched_insert_all().execute(rows.to_rows(changed, table.schema), on_bad_vectors="null")
                if upkeep.is_due(table, bool(self._loading)):
                    self.optimise()
        return outcomes

    def purge(self, older_than_seconds: float) -> int:
        with self._directory.writing():
            table = self._table()
            old = f"deleted = true AND indexed_at < {rows.now() - round(older_than_seconds * 1e6)}"
            count = table.count_rows(old)
            if count:
                table.delete(old)
        return count

    def refresh(self) -> None:
        """Every read sees every write already."""

    def optimise(self) -> None:
        with self._directory.writing(), self._directory.nobody_reads_past() as nobody:
            upkeep.tidy(self._table(), remove_old=nobody)

    @contextmanager
    def loading(self) -> Iterator[None]:
        self._loading += 1
        try:
            yield
        finally:
            self._loading -= 1
        self.optimise()

    # a new model without downtime

    def successor(self, spec: Spec) -> LanceIndex:
        with self._directory.writing():
            return LanceIndex(self.url, self._directory, self._directory.begun(spec)).create(spec)

    def go_live(self) -> None:
        with self._directory.writing():
            self._directory.go_live(self._name())

    def rollback(self) -> str:
        with self._directory.writing():
            former = self._directory.go_back()
        if former is None:
            raise IndexUnusable(f"{self.url} has no index before {self._name()} to go back to")
        return former

    def former(self) -> LanceIndex | None:
        name = self._directory.former()
        return LanceIndex(self.url, self._directory, name) if name else None

    # reading

    def spec(self) -> Spec:
        return self._reader.spec(self._name())

    def status(self) -> Status:
        name, table = self._name(), self._table()
        times = self._reader.select(name, "", ["version", "indexed_at", "deleted"])
        spec, lists = rows.spec_of(table.schema), upkeep.lists(table.list_indices())
        live = table.count_rows(LIVE)
        files = (self._directory.path / f"{name}.lance").rglob("*")
        return Status(
            model=spec.model,
            dimension=spec.dimension,
            physical=name,
            created_at=rows.created_at(table.schema),
            live=live,
            tombstones=times.num_rows - live,
            newest_version=pc.max(times["version"]).as_py(),
            newest_write=pc.max(times["indexed_at"]).as_py(),
            bytes=sum(file.stat().st_size for file in files if file.is_file()),
            vectors=f"approximate, IVF_SQ of {lists} lists" if lists else "exact",
        )

    def known(self, ids: Iterable[str]) -> dict[str, Known]:
        return dict(chain.from_iterable(rows.to_known(found).items() for found in self._by_id(ids, rows.KNOWN_COLUMNS)))

    def get_many(self, ids: Iterable[str]) -> dict[str, Document]:
        found = self._by_id(ids, [*rows.COLUMNS, "embedding"])
        return {one.id: one for page in found for one in rows.to_documents(page) if not one.deleted}

    def scan(self, batch_size: int = 1000, tombstones: bool = False) -> Iterator[list[Document]]:
        with self._directory.reading_past():
            # A handle of its own: going back to a state would take all readers of a shared one along.
            table = lancedb.connect(str(self._directory.path)).open_table(self._name())
            table.checkout(table.version)
            query = table.search().select([*rows.COLUMNS, "embedding"])
            for batch in (query if tombstones else query.where(LIVE)).to_batches(batch_size=batch_size):
                if batch.num_rows:
                    yield list(rows.to_documents(batch))

    def facets(self, filters: Filters = EVERYTHING, top: int = 100) -> Facets:
        found = self._reader.select(self._name(), matching(filters), list(FILTERABLE))
        return answers.facets(found, top)

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
        check_query(self.url, self._reader.spec(table), model, vector, k)
        more, fewer = widened(k, filters)
        found = self._reader.nearest(table, vector, more, matching_vectors(fewer), exact)
        return narrowed(answers.by_cosine(found), k, filters)

    def search(self, text: str, k: int, *, filters: Filters = EVERYTHING) -> list[Hit]:
        check_size(k)
        return answers.by_words(self._reader.search(self._name(), _match(text), k, matching(filters)))

    def nearest_candidates(
        self, vector: Vector, k: int, *, model: str, filters: Filters = EVERYTHING
    ) -> list[Candidate]:
        table = self._name()
        check_query(self.url, self._reader.spec(table), model, vector, k)
        more, fewer = widened(k, filters)
        found = self._reader.nearest(table, vector, more, matching_vectors(fewer), False, rows.CANDIDATE_COLUMNS)
        return [one for one in answers.candidates(found) if one.id not in filters.exclude_ids][:k]

    def worded_candidates(self, text: str, k: int, *, filters: Filters = EVERYTHING) -> list[Candidate]:
        where = matching(filters)
        return answers.candidates(self._reader.search(self._name(), _match(text), k, where, rows.CANDIDATE_COLUMNS))

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
            found = self._reader.select(self._name(), where, rows.CANDIDATE_COLUMNS)
        return [one for one in answers.candidates(found) if one.id not in filters.exclude_ids]

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
            yield self._reader.select(table, among("id", asked[start : start + IDS_PER_QUERY]), columns)


def _match(text: str) -> MultiMatchQuery:
    words = text.encode(errors="replace").decode()
    return MultiMatchQuery(words, ["name", "description"], boosts=[NAME_COUNTS, 1.0])  # type: ignore[call-arg]
