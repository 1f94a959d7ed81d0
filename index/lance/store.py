"""The embedded index: LanceDB in a local directory, for a laptop or one machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from index.base import Index, Known, Outcome, Spec
from index.document import Document
from index.errors import IndexMissing, IndexUnusable
from index.lance import maintenance, rows
from index.lance.directory import Directory
from index.lance.reading import IDS_PER_QUERY, Reading
from index.lance.where import among
from index.merge_versions import merge_versions


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


class LanceIndex(Reading):
    """Follows the live table, or stays with the one that is named. Safe to share between threads, not to fork with."""

    def __init__(self, url: str, directory: Directory, table: str | None = None, instead_of: str | None = None):
        super().__init__(url, directory, table)
        self._instead_of = instead_of  # the one that was live when this one was begun
        self._loading = 0

    def create(self, spec: Spec) -> LanceIndex:
        """With the lock held; what a dead process left half made is completed."""
        try:
            table = self._table()
        except ValueError:  # LanceDB's word for a table that is not there, or has no state yet
            table = self._database.create_table(self._name(), schema=rows.schema(spec))
        maintenance.create_indices(table)
        return self

    # writing

    def write(self, documents: Sequence[Document], force: bool = False) -> list[Outcome]:
        with self._directory.writing():  # what is known cannot change until it is written
            for model in {one.model for one in documents if not one.deleted}:
                self.require(model)
            table = self._table()
            known = self.known(one.id for one in documents)
            keeping = [one.id for one in documents if one.embedding is None and one.id in known and not one.deleted]
            vectors = {row.id: row.embedding for row in self.get_many(keeping).values() if row.embedding is not None}
            outcomes, changed = merge_versions(documents, known, vectors, self.spec().dimension, force)
            if changed:
                # The lock rules; the condition is for whoever writes to the table without it.
                merge = table.merge_insert("id").when_matched_update_all(where="target.version <= source.version")
                merge.when_not_matched_insert_all().execute(rows.to_rows(changed, table.schema), on_bad_vectors="null")
                if maintenance.is_due(table, bool(self._loading)):
                    self.optimise()
        return outcomes

    def purge(self, older_than_seconds: float) -> int:
        with self._directory.writing():
            table = self._table()
            old = f"deleted = true AND indexed_at < {rows.now() - round(older_than_seconds * 1e6)}"
            count = table.count_rows(old)
            if count:
                self._directory.note_purge(self._name())  # first: what is missing from here may have been deleted
                table.delete(old)
        return count

    def remove(self, known: Mapping[str, Known]) -> int:
        with self._directory.writing():
            stored = self.known(known)
            same = [id for id, one in stored.items() if one.order == known[id].order]
            for start in range(0, len(same), IDS_PER_QUERY):
                self._table().delete(among("id", same[start : start + IDS_PER_QUERY]))
        return len(same)

    def optimise(self) -> None:
        with self._directory.writing(), self._directory.nobody_reads_past() as nobody:
            maintenance.tidy(self._table(), remove_old=nobody)

    @contextmanager
    def loading(self) -> Iterator[None]:
        self._loading += 1
        try:
            yield
        finally:
            self._loading -= 1
        self.optimise()

    # a new model without downtime

    def fixed(self) -> LanceIndex:
        return LanceIndex(self.url, self._directory, self._name())

    def successor(self, spec: Spec) -> LanceIndex:
        with self._directory.writing():
            live = self._name()
            return LanceIndex(self.url, self._directory, self._directory.begun(spec), live).create(spec)

    def former(self) -> LanceIndex | None:
        name = self._directory.former()
        return LanceIndex(self.url, self._directory, name) if name else None

    @contextmanager
    def moving(self, target: Index) -> Iterator[Callable[[], bool]]:
        with self._directory.moving() as alone:
            if not alone:
                raise IndexUnusable(f"{self.url} is being moved to another model by another process; wait for its end")
            yield lambda: self._directory.live() == self._name()

    @contextmanager
    def frozen(self) -> Iterator[Callable[[], bool]]:
        """Only the thread that froze it may write meanwhile, to whichever table."""
        with self._directory.writing():
            yield lambda: True

    def go_live(self) -> None:
        with self._directory.writing():
            self._require_live(self._instead_of)
            self._directory.go_live(self._name())

    def rollback(self) -> str:
        with self._directory.writing():
            self._require_live(self._pinned)
            former = self._directory.go_back()
        if former is None:
            raise IndexUnusable(f"{self.url} has no index before {self._name()} to go back to")
        return former

    def drop_former(self) -> list[str]:
        with self._directory.moving() as alone, self._directory.writing():
            if not alone:
                raise IndexUnusable(
                    f"{self.url} is being moved to another model: nothing was removed; wait for its end"
                )
            return self._directory.drop_former()

    def _require_live(self, expected: str | None) -> None:
        live = self._directory.live()
        if expected and live != expected:
            raise IndexUnusable(f"{self.url} answers from {live} by now, not from {expected}; nothing was changed")
