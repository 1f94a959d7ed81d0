"""Many documents in one request, and what became of each. Sent again they do no harm: versions are external, so that
Elasticsearch itself lets the newest win."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import orjson
from elasticsearch import ApiError, Elasticsearch

from index.base import Outcome
from index.document import Document
from index.elastic.mapping import to_source
from index.elastic.patience import BUSY, Patience, reason

BYTES = 5_000_000  # of a request; servers take 100 MB unless told otherwise, and proxies before them less
DOCUMENTS, IN_FLIGHT = 512, 4  # Elasticsearch works on a request with one thread, and each costs both sides some ms
MALFORMED, CONFLICT, TOO_LARGE = 400, 409, 413
_FIELD = re.compile(r'field(?:=| name )?\s*["\[](\w+)["\]]')


class Bulk:
    """Safe to share between threads."""

    def __init__(self, url: str, client: Elasticsearch):
        self._url, self._client = url, client
        self._packed = True  # until the server turns out not to take vectors in base64
        self._pool = ThreadPoolExecutor(IN_FLIGHT, thread_name_prefix="bulk")

    def write(self, index: str, documents: Sequence[Document], written: int) -> dict[str, Outcome]:
        """By id; at most one document an id comes in."""
        # The first part is on its way while the next is being made: threads that make theirs side by side all end late.
        sent = [
            self._pool.submit(self._deliver, index, part, lines, written)
            for part, lines in self._parts(documents, written)
        ]
        outcomes = dict[str, Outcome]()
        for one in sent:
            outcomes |= one.result()
        return outcomes

    def _deliver(self, index: str, part: list[Document], lines: list[bytes], written: int) -> dict[str, Outcome]:
        patience, outcomes, documents = Patience(self._url), dict[str, Outcome](), {one.id: one for one in part}
        plain = set[str]()  # tried with their vectors as numbers
        while part:
            refused, busy = list[Document](), ""
            for document, item in zip(part, self._send(index, part, lines, patience), strict=True):
                if item["status"] in BUSY:
                    refused.append(document)
                    busy = f"{item['status']} {reason(item.get('error'))}"
                elif item["status"] == MALFORMED and self._packed and document.id not in plain:
                    refused.append(document)
                    plain.add(document.id)
                else:
                    outcomes[document.id] = _outcome(document, item)
                    patience.progress()
            if any(outcomes[id].status == "indexed" for id in plain & outcomes.keys()):
                self._packed = False
            part = refused
            lines = [line for one in part for line in _lines(one, written, self._packed and one.id not in plain)]
            if busy:
                patience.pause(busy)
        if patience.tested:
            self._claim(index, outcomes, documents, written, patience)
        return outcomes

    def delete(self, index: str, hits: Sequence[dict[str, Any]]) -> int:
        """Of found documents those that nobody changed since; how many."""
        patience = Patience(self._url)
        operations = [
            {"delete": {"_id": hit["_id"], "if_seq_no": hit["_seq_no"], "if_primary_term": hit["_primary_term"]}}
            for hit in hits
        ]
        answer = patience.ask(lambda: self._client.bulk(index=index, operations=operations))
        return sum(item["delete"]["status"] < 300 for item in answer["items"])

    def _parts(self, documents: Sequence[Document], written: int) -> Iterator[tuple[list[Document], list[bytes]]]:
        """Documents with their lines, as many as go into one request."""
        part, lines, size = list[Document](), list[bytes](), 0
        for document in documents:
            action, source = _lines(document, written, self._packed)
            if part and (len(part) == DOCUMENTS or size + len(source) > BYTES):
                yield part, lines
                part, lines, size = [], [], 0
            part.append(document)
            lines += [action, source]
            size += len(source)
        if part:
            yield part, lines

    def _send(self, index: str, part: list[Document], lines: list[Any], patience: Patience) -> list[dict[str, Any]]:
        """Status and error of each; what is too large together is sent in halves."""
        wanted = ["items.*.status", "items.*.error"]
        try:
            answer = patience.ask(lambda: self._client.bulk(index=index, operations=lines, filter_path=wanted))
        except ApiError as error:
            if error.status_code != TOO_LARGE:
                raise
            if len(part) == 1:
                return [{"status": TOO_LARGE, "error": {"reason": "description: larger than the server takes"}}]
            half = len(part) // 2
            first = self._send(index, part[:half], lines[: 2 * half], patience)
            return first + self._send(index, part[half:], lines[2 * half :], patience)
        return [item["index"] for item in answer["items"]]

    def _claim(
        self, index: str, outcomes: dict[str, Outcome], sent: dict[str, Document], written: int, patience: Patience
    ) -> None:
        """A request whose answer was lost may have done its work: its second try then found its own documents."""
        doubtful = [id for id, outcome in outcomes.items() if outcome.status == "stale"]
        if not doubtful:
            return
        columns = ["version", "indexed_at"]
        answer = patience.ask(lambda: self._client.mget(index=index, ids=doubtful, source_includes=columns))
        for found in answer["docs"]:
            document, source = sent[found["_id"]], found.get("_source", {})
            if (source.get("version"), source.get("indexed_at")) == (document.version, written):
                outcomes[document.id] = Outcome(document.id, "deleted" if document.deleted else "indexed")


def _lines(document: Document, written: int, packed: bool) -> tuple[bytes, bytes]:
    action = {"index": {"_id": document.id, "version": document.version, "version_type": "external"}}
    return orjson.dumps(action), orjson.dumps(to_source(document, written, packed))


def _outcome(document: Document, item: dict[str, Any]) -> Outcome:
    if item["status"] < 300:
        return Outcome(document.id, "deleted" if document.deleted else "indexed")
    if item["status"] == CONFLICT:
        return Outcome(document.id, "stale")
    said = reason(item.get("error"))
    field = _FIELD.search(said)
    return Outcome(document.id, "failed", f"{field[1]}: {said}" if field else said)
