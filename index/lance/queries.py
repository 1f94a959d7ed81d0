"""Questions to a table, through LanceDB's asynchronous client.

Its synchronous one asks for the schema several times a query: that takes longer than to find one company by its id,
which every question about a company begins with, and a third of the time of finding those nearest to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lancedb
import pyarrow as pa
from lancedb.background_loop import LOOP
from lancedb.query import FullTextQuery
from lancedb.table import AsyncTable

from index.base import Spec
from index.document import Vector
from index.lance import maintenance, rows


@dataclass
class _Opened:
    name: str
    table: AsyncTable
    spec: Spec
    lists: tuple[int, int] = (0, 0)  # the version of the table, and how many its vector index had then


class TableQueries:
    """Safe to share between threads, not to fork with. Every read looks for the newest state."""

    def __init__(self, directory: Path):
        self._directory = directory
        self._opened: _Opened | None = None

    def spec(self, table: str) -> Spec:
        """A table keeps the one that it was made with."""
        opened: _Opened = self._known(table) or LOOP.run(self._open(table))
        return opened.spec

    def select(self, table: str, where: str, columns: list[str]) -> pa.Table:
        found: pa.Table = LOOP.run(self._select(table, where, columns))
        return found

    def nearest(
        self, table: str, vector: Vector, k: int, where: str, exact: bool, columns: list[str] = rows.COLUMNS
    ) -> pa.Table:
        """The k nearest of those that have a vector, with `_distance`."""
        found: pa.Table = LOOP.run(self._nearest(table, vector, k, where, exact, columns))
        return found

    def search(
        self, table: str, words: FullTextQuery, k: int, where: str, columns: list[str] = rows.COLUMNS
    ) -> pa.Table:
        """The k best, with `_score`."""
        found: pa.Table = LOOP.run(self._search(table, words, k, where, columns))
        return found

    async def _select(self, table: str, where: str, columns: list[str]) -> pa.Table:
        query = (await self._newest(table)).table.query().select(columns)
        return await (query.where(where) if where else query).to_arrow()

    async def _nearest(
        self, table: str, vector: Vector, k: int, where: str, exact: bool, columns: list[str]
    ) -> pa.Table:
        opened = await self._newest(table)
        query: Any = opened.table.query().nearest_to(vector).column("embedding").distance_type("cosine")
        lists = 0 if exact else await _lists(opened)
        if lists:
            # Past the lists that must be read, filters may leave too few companies: then go on to the end.
            query = query.maximum_nprobes(0).minimum_nprobes(min(lists, maintenance.lists_read(lists)))
            query = query.refine_factor(maintenance.REFINE)
        else:
            query = query.bypass_vector_index()
        query = query.where(where) if where else query
        return await query.select([*columns, "_distance"]).limit(k).to_arrow()

    async def _search(self, table: str, words: FullTextQuery, k: int, where: str, columns: list[str]) -> pa.Table:
        query = (await self._newest(table)).table.query().nearest_to_text(words)
        return await query.where(where).select([*columns, "_score"]).limit(k).to_arrow()

    async def _newest(self, name: str) -> _Opened:
        """The table in the state that it has now. Looked for once a question: by itself LanceDB would do so at every
        step of it."""
        opened = self._known(name) or await self._open(name)
        await opened.table.checkout_latest()
        return opened

    def _known(self, name: str) -> _Opened | None:
        opened = self._opened
        return opened if opened and opened.name == name else None

    async def _open(self, name: str) -> _Opened:
        table = await (await lancedb.connect_async(str(self._directory))).open_table(name)
        opened = self._opened = _Opened(name, table, rows.spec_of(await table.schema()))
        return opened


async def _lists(opened: _Opened) -> int:
    """Of the vector index, asked for again only where somebody has written."""
    version = await opened.table.version()
    if opened.lists[0] != version:
        opened.lists = (version, maintenance.lists(await opened.table.list_indices()))
    return opened.lists[1]
