"""What keeps a LanceDB table fast: text and id indices, few files, and a vector index once there are many vectors."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from lancedb.index import FTS, BTree, IndexConfig, IvfSq
from lancedb.table import Table

from index.lance.where import LIVE

# Each write leaves a file, and each file costs a query 0.25 ms: a hundred are merged in the time of a few writes.
FILES = 100
FILES_LOADING = 500
# Words in rows that no index holds yet are looked for row by row: 25,000 of them made a search take most of a second.
ROWS_APART = 5000
# Reading all vectors is exact, and its time grows with them: 60 to 190 ms for 36,642 of 384 numbers on two busy cores,
# where an index took 10 to 15. Of a quarter as many there is nothing worth an index's 3 s to gain.
EXACT_BELOW = 10_000
# One byte a number (IVF_SQ), the best re-ranked by the vectors themselves. Measured on 36,642 vectors of 384 numbers
# with 30 of 36 lists read: recall@10 1.0, built in 3 s. IVF_PQ took 200 s, HNSW 45 s, neither answered faster.
ROWS_PER_LIST = 1000
LISTS_READ = 30
SHARE_READ = 10  # one in so many, where that is more
REFINE = 4
RETRAIN_AT = 4  # times the rows it was trained on: lists grow uneven
# Queries under way may still read a state that was replaced; scans hold a lock of their own.
KEPT = timedelta(minutes=10)

_VECTORS = re.compile(r"vectors_(\d+)")  # an index is named after its number of lists


def create_indices(table: Table) -> None:
    """Those that an empty table can have; rows written later are found without them, and join them in `tidy`."""
    # "The It Company" is all stop words
    wanted: dict[str, BTree | FTS] = {"id": BTree(), "name": FTS(remove_stop_words=False), "description": FTS()}
    present = {column for index in table.list_indices() for column in index.columns}
    for column in wanted.keys() - present:
        table.create_index(column, config=wanted[column])


def is_due(table: Table, loading: bool) -> bool:
    stats: Any = table.stats()  # a dict, whatever it is declared as
    files: int = stats["fragment_stats"]["num_fragments"]
    if loading:
        return files > FILES_LOADING
    apart = max((index.num_unindexed_rows or 0 for index in table.list_indices()), default=0)
    return files > FILES or apart > ROWS_APART


def tidy(table: Table, remove_old: bool) -> None:
    """Only for who holds the write lock: files that no state names are then left-overs of the dead."""
    # A century keeps every old state; None would mean LanceDB's own seven days.
    table.optimize(cleanup_older_than=KEPT if remove_old else timedelta(days=36_500), delete_unverified=remove_old)
    _train(table)


def lists(indices: Iterable[IndexConfig]) -> int:
    """Of a table's indices, how many lists the one of its vectors has; 0 without one."""
    return max((number for _, number in _vector_indices(indices)), default=0)


def lists_read(number: int) -> int:
    return max(LISTS_READ, number // SHARE_READ)


def _train(table: Table) -> None:
    present, live = _vector_indices(table.list_indices()), table.count_rows(LIVE)
    trained_on = max((number for _, number in present), default=0) * ROWS_PER_LIST
    if live < max(EXACT_BELOW, trained_on * RETRAIN_AT):
        return
    wanted = live // ROWS_PER_LIST
    table.create_index(
        "embedding", config=IvfSq(distance_type="cosine", num_partitions=wanted), name=f"vectors_{wanted}"
    )
    for name, _ in present:
        table.drop_index(name)


def _vector_indices(indices: Iterable[IndexConfig]) -> list[tuple[str, int]]:
    matches = [(index.name, _VECTORS.fullmatch(index.name)) for index in indices]
    return [(name, int(match[1])) for name, match in matches if match]
