"""The same nearest companies, by either store's own client and nothing of ours around it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lancedb
import numpy as np
from elasticsearch import Elasticsearch

from index.document import EVERYTHING
from index.elastic.mapping import vector_kind
from index.elastic.queries import nearest
from index.lance import maintenance, rows

NEAREST = 10

Bare = Callable[[np.ndarray], Any]


def in_elasticsearch(client: Elasticsearch, alias: str, dimension: int, companies: int) -> Bare:
    kind = vector_kind(dimension, companies)
    return lambda vector: client.search(index=alias, body=nearest(vector, NEAREST, EVERYTHING, kind))


def in_lancedb(directory: Path, table_name: str) -> Bare:
    table = lancedb.connect(str(directory)).open_table(table_name)
    lists = maintenance.lists(table.list_indices())

    def ask(vector: np.ndarray) -> Any:
        query: Any = table.search(vector, vector_column_name="embedding")
        query = query.distance_type("cosine").limit(NEAREST)
        if lists:
            query = query.minimum_nprobes(min(lists, maintenance.lists_read(lists))).maximum_nprobes(0)
            query = query.refine_factor(maintenance.REFINE)
        return query.select([*rows.COLUMNS, "_distance"]).to_arrow()

    return ask
