"""Feedback beside an index in Elasticsearch: an index of its own, <alias>-feedback."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from elastic_transport import TransportError
from elasticsearch import ApiError, BadRequestError, NotFoundError

from index.elastic.access import Access, Address, connect
from index.elastic.pages import walk
from index.elastic.patience import reason
from index.elastic.places import Places
from index.errors import IndexUnusable
from search.feedback import Feedback, FeedbackDown, Record, from_json, to_json

SECONDS = 5.0  # somebody waits for the answer
PAGE = 1000
CREATE = b'{"create":{}}'  # the server makes the id: nothing is ever written over
# Kept whole; found by kind, list and time alone.
MAPPING = {
    "dynamic": False,
    "properties": {"kind": {"type": "keyword"}, "shown": {"type": "keyword"}, "at": {"type": "long"}},
}


class ElasticFeedback(Feedback):
    def __init__(self, index_url: str):
        address = Address.parse(index_url)
        self._client, self._name = connect(address, Access.from_environment()), f"{address.alias}-feedback"
        self._places = Places(index_url, self._client, address.alias)
        self._places.patience = SECONDS
        self.where = f"{index_url}-feedback"
        self._made = False

    def add(self, records: Sequence[Record]) -> None:
        lines: list[Any] = []  # the client takes JSON as it is, but its types do not say so
        for record in records:
            lines += [CREATE, to_json(record)]
        try:
            self._make()
            # Not tried again by itself: a request that was lost after it was done would be kept twice.
            answer = self._client.bulk(index=self._name, operations=lines)
        except (TransportError, ApiError, IndexUnusable) as error:
            raise FeedbackDown(f"{self.where} cannot be written: {_said(error)}") from error
        faults = [item["create"]["error"] for item in answer["items"] if "error" in item["create"]]
        if faults:
            raise FeedbackDown(f"{self.where} cannot be written: {reason({'error': faults[0]})}")

    def scan(self) -> Iterator[Record]:
        try:
            self._client.indices.refresh(index=self._name)
            for page in walk(self._places, self._name, {"match_all": {}}, PAGE, True):
                yield from (from_json(hit["_source"]) for hit in page)
        except NotFoundError:
            return
        except (TransportError, ApiError, IndexUnusable) as error:
            raise FeedbackDown(f"{self.where} cannot be read: {_said(error)}") from error

    def _make(self) -> None:
        """Before the first record: one that made itself would guess at types."""
        if self._made:
            return
        try:
            self._client.indices.create(index=self._name, mappings=MAPPING)
        except BadRequestError as error:
            if error.error != "resource_already_exists_exception":
                raise
        self._made = True


def _said(error: Exception) -> str:
    return reason(error.body) if isinstance(error, ApiError) else " ".join(str(error).split())[:300]
