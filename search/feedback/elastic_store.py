"""Feedback beside an index in Elasticsearch: an index of its own, <alias>-feedback."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from elastic_transport import TransportError
from elasticsearch import ApiError, BadRequestError, Elasticsearch, NotFoundError

from index.backend import Sibling
from index.errors import IndexUnavailable, IndexUnusable
from search.feedback.elastic_capacity import Capacity, sized
from search.feedback.store import (
    BOUND,
    Feedback,
    FeedbackDown,
    FeedbackFull,
    Record,
    Shown,
    allowed,
    from_json,
    to_json,
)

SECONDS = 5.0  # somebody waits for the answer
PAGE = 1000
FAILURES = (TransportError, ApiError, IndexUnavailable, IndexUnusable)
LOOK = 60.0  # seconds between two looks at how much is there
CREATE = b'{"create":{}}'  # the server makes the id: nothing is ever written over
# Kept whole; found by kind, list and time alone, and its bytes counted.
MAPPING: dict[str, Any] = {
    "dynamic": False,
    "properties": {
        "kind": {"type": "keyword"},
        "shown": {"type": "keyword"},
        "at": {"type": "long"},
        "bytes": {"type": "long"},
    },
}


class ElasticFeedback(Feedback):
    """Lists that nobody answered make room for new ones, the oldest first; answers are never dropped."""

    def __init__(self, sibling: Sibling, bound: int = BOUND):
        self._sibling = sibling
        self._client: Elasticsearch = sibling.client
        self._name, self.where = sibling.name, sibling.url
        self._made, self.bound = False, bound
        self._capacity = Capacity(self._client.options(request_timeout=SECONDS), self._name, LOOK)

    def add(self, records: Sequence[Record]) -> None:
        documents = [sized(to_json(record)) for record in records]
        lines: list[Any] = []  # the client takes JSON as it is, but its types do not say so
        for document in documents:
            lines += [CREATE, document]
        try:
            self._make()
            self._find_room(records, sum(map(len, documents)))
            # Not tried again by itself: a request that was lost after it was done would be kept twice.
            response = self._client.bulk(index=self._name, operations=lines)
        except FAILURES as error:
            raise FeedbackDown(f"{self.where} cannot be written: {self._sibling.reason(error)}") from error
        faults = [item["create"]["error"] for item in response["items"] if "error" in item["create"]]
        if faults:
            raise FeedbackDown(f"{self.where} cannot be written: {self._sibling.reason(faults[0])}")
        self._capacity.taken(sum(map(len, documents)))

    def _find_room(self, records: Sequence[Record], added: int) -> None:
        """Whoever answers waits, so it is lists that make room for what comes."""
        limit = allowed(records, self.bound)
        if self._capacity.used() + added <= limit:
            return
        if any(isinstance(record, Shown) for record in records):
            self._capacity.drop_lists(down_to=limit * 3 // 4 - added)
        if self._capacity.used() + added > limit:
            raise FeedbackFull(self.where, self._capacity.used(), limit)

    def scan(self) -> Iterator[Record]:
        try:
            self._client.indices.refresh(index=self._name)
            for page in self._sibling.pages({"match_all": {}}, PAGE, SECONDS):
                yield from (from_json(hit["_source"]) for hit in page)
        except NotFoundError:
            return
        except FAILURES as error:
            raise FeedbackDown(f"{self.where} cannot be read: {self._sibling.reason(error)}") from error

    def _make(self) -> None:
        """Before the first record: one that made itself would guess at types."""
        if self._made:
            return
        try:
            self._client.indices.create(index=self._name, mappings=MAPPING)
        except BadRequestError as error:
            if error.error != "resource_already_exists_exception":
                raise
            # One of an earlier release did not count bytes.
            self._client.indices.put_mapping(index=self._name, properties=MAPPING["properties"])
        self._made = True
