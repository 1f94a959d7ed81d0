"""Many documents read in pages: by id as last written, or all that a query matches at one moment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from elastic_transport import TransportError
from elasticsearch import ApiError, Elasticsearch

from index.document import is_unicode
from index.elastic.cluster.aliases import Aliases
from index.elastic.cluster.retry import Retry, reason
from index.elastic.queries import page

IDS_PER_QUERY = 1000
KEEP_ALIVE = "15m"  # between two pages, in which whoever reads may encode the first


class Gone(Exception):
    """An index that was dropped a moment ago: here that is no error of the whole request."""


def read(
    retry: Retry, client: Elasticsearch, index: str, ids: Sequence[str], columns: list[str]
) -> list[dict[str, Any]]:
    """What the server has of each id, in their order. A shard that is away for a moment is an error of its items alone,
    which must not be taken for companies that are missing."""
    while True:
        response = retry.call(partial(client.mget, index=index, ids=ids, source_includes=columns))
        found: list[dict[str, Any]] = response["docs"]
        errors = [one["error"] for one in found if "error" in one]
        if not errors:
            return found
        if any(error["type"] == "index_not_found_exception" for error in errors):
            raise Gone(index)
        retry.pause(reason(errors[0]))


def by_id(aliases: Aliases, index: str, ids: Iterable[str], columns: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Searchable yet or not."""
    asked = [id for id in dict.fromkeys(ids) if id and is_unicode(id)]
    for start in range(0, len(asked), IDS_PER_QUERY):
        some = asked[start : start + IDS_PER_QUERY]
        found = read(Retry(aliases.url, aliases.retry_seconds), aliases.client, index, some, columns)
        yield from ((one["_id"], one["_source"]) for one in found if one.get("found"))


def walk(
    aliases: Aliases, index: str, query: dict[str, Any], size: int, columns: list[str] | bool
) -> Iterator[list[dict[str, Any]]]:
    """What is searchable as it begins, whatever is written meanwhile.

    A walk that its reader gives up is ended by the next one, or by the server in time. Nothing may be sent for it here:
    Python may collect it in the middle of another request of this thread, whose locks it would wait for for ever.
    """
    client = aliases.client
    _close_abandoned(aliases)
    opened = aliases.call(lambda: client.open_point_in_time(index=index, keep_alive=KEEP_ALIVE))
    point, body = opened["id"], page(query, size, columns)
    try:
        while True:
            body["pit"] = {"id": point, "keep_alive": KEEP_ALIVE}
            found = aliases.call(lambda: client.search(body=body))
            point, hits = found["pit_id"], found["hits"]["hits"]
            if not hits:
                break
            yield hits
            body["search_after"] = hits[-1]["sort"]
    finally:
        aliases.abandoned.append(point)
    _close_abandoned(aliases)


def _close_abandoned(aliases: Aliases) -> None:
    while aliases.abandoned:
        with suppress(IndexError, TransportError, ApiError):  # another took it; it ends by itself in time
            aliases.client.close_point_in_time(id=aliases.abandoned.popleft())
