"""Bounds the bytes of feedback in Elasticsearch: counts them, and drops the oldest lists that nobody answered."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from elastic_transport import TransportError
from elasticsearch import ApiError, Elasticsearch

PAGE = 1000
PAGES = 200  # at a time: the next time goes on
UNSIZED = 500  # bytes, about, of a document of an earlier release


def sized(document: bytes) -> bytes:
    """A document that tells how many bytes it has, without these."""
    return b'{"bytes":%d,' % len(document) + document[1:]


class Capacity:
    """Counts the documents' own bytes: what they take on disk is the server's affair, and changes by itself."""

    def __init__(self, client: Elasticsearch, name: str, look: float):
        self._client, self._name, self._look = client, name, look
        self._bytes, self._looked = 0, float("-inf")
        self._rest = float("-inf")  # till then there is nothing to drop

    def used(self) -> int:
        """As of the last look, and what was added by this process since."""
        if time.monotonic() - self._looked > self._look:
            size = {"sum": {"field": "bytes", "missing": UNSIZED}}
            with suppress(TransportError, ApiError):  # a shard may not be back yet, and still take what is written
                self._client.indices.refresh(index=self._name)
                found = self._client.search(index=self._name, size=0, aggs={"bytes": size})
                self._bytes, self._looked = int(found["aggregations"]["bytes"]["value"]), time.monotonic()
        return self._bytes

    def taken(self, number: int) -> None:
        self._bytes += number

    def drop_lists(self, down_to: int) -> None:
        """The oldest of those that nobody answered, until so many bytes are left."""
        if time.monotonic() < self._rest:
            return
        for page in self._lists():
            answered = self._answered([hit["_source"]["id"] for hit in page])
            unanswered = [hit for hit in page if hit["_source"]["id"] not in answered]
            if unanswered:
                gone: list[dict[str, Any]] = [{"delete": {"_id": hit["_id"]}} for hit in unanswered]
                self._client.bulk(index=self._name, operations=gone)
                self._bytes -= sum(hit["_source"].get("bytes", UNSIZED) for hit in unanswered)
            if self._bytes <= down_to:
                break
        else:
            self._rest = time.monotonic() + self._look
        self._client.indices.refresh(index=self._name)

    def _lists(self) -> Iterator[list[dict[str, Any]]]:
        self._client.indices.refresh(index=self._name)
        after: list[Any] | None = None
        for _ in range(PAGES):
            found = self._client.search(
                index=self._name,
                query={"term": {"kind": "shown"}},
                sort=[{"at": "asc"}],
                search_after=after,
                size=PAGE,
                source_includes=["id", "bytes"],
                track_total_hits=False,
            )
            hits = found["hits"]["hits"]
            if not hits:
                return
            yield hits
            after = hits[-1]["sort"]

    def _answered(self, ids: list[str]) -> set[str]:
        query = {"bool": {"filter": [{"term": {"kind": "answer"}}, {"terms": {"shown": ids}}]}}
        lists = {"terms": {"field": "shown", "size": PAGE}}
        found = self._client.search(index=self._name, query=query, size=0, aggs={"lists": lists})
        return {bucket["key"] for bucket in found["aggregations"]["lists"]["buckets"]}
