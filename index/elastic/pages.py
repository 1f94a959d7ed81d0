"""Many documents read in pages: by id as last written, or all that a query matches at one moment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from elastic_transport import TransportError
from elasticsearch import ApiError

from index.document import is_unicode
from index.elastic.places import Places
from index.elastic.queries import page

IDS_PER_QUERY = 1000
KEEP_ALIVE = "15m"  # between two pages, in which whoever reads may encode the first


def by_id(places: Places, index: str, ids: Iterable[str], columns: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Searchable yet or not."""
    asked = [id for id in dict.fromkeys(ids) if id and is_unicode(id)]
    for start in range(0, len(asked), IDS_PER_QUERY):
        some = asked[start : start + IDS_PER_QUERY]
        answer = places.ask(partial(places.client.mget, index=index, ids=some, source_includes=columns))
        yield from ((one["_id"], one["_source"]) for one in answer["docs"] if one.get("found"))


def walk(
    places: Places, index: str, query: dict[str, Any], size: int, columns: list[str] | bool
) -> Iterator[list[dict[str, Any]]]:
    """What is searchable as it begins, whatever is written meanwhile."""
    client = places.client
    opened = places.ask(lambda: client.open_point_in_time(index=index, keep_alive=KEEP_ALIVE))
    point, body = opened["id"], page(query, size, columns)
    try:
        while True:
            body["pit"] = {"id": point, "keep_alive": KEEP_ALIVE}
            found = places.ask(lambda: client.search(body=body))
            point, hits = found["pit_id"], found["hits"]["hits"]
            if not hits:
                return
            yield hits
            body["search_after"] = hits[-1]["sort"]
    finally:
        with suppress(TransportError, ApiError):  # it ends by itself in time
            client.close_point_in_time(id=point)
