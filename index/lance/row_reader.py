"""Rows of a table by a condition, through LanceDB's asynchronous client.

Its synchronous one asks for the schema several times a query: that takes longer than to find one company by its id,
which every question about a company begins with.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import lancedb
import pyarrow as pa
from lancedb.background_loop import LOOP
from lancedb.table import AsyncTable


class RowReader:
    """Safe to share between threads, not to fork with. Every read looks for the newest state."""

    def __init__(self, directory: Path):
        self._directory = directory
        self._opened: tuple[str, AsyncTable] | None = None

    def select(self, table: str, where: str, columns: list[str]) -> pa.Table:
        found: pa.Table = LOOP.run(self._select(table, where, columns))
        return found

    async def _select(self, table: str, where: str, columns: list[str]) -> pa.Table:
        query = (await self._table(table)).query().select(columns)
        return await (query.where(where) if where else query).to_arrow()

    async def _table(self, name: str) -> AsyncTable:
        if self._opened is None or self._opened[0] != name:
            always = timedelta(0)
            database = await lancedb.connect_async(str(self._directory), read_consistency_interval=always)
            self._opened = (name, await database.open_table(name))
        return self._opened[1]
