"""Many documents in one request, and what became of each. Sent again they do no harm: a document is there once, and
the greatest order wins."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from typing import Any

import orjson
from elasticsearch import ApiError, Elasticsearch

from index.base import Outcome
from index.document import Document
from index.elastic.cluster.aliases import writes_to
from index.elastic.cluster.retry import Retry, reason
from index.elastic.mapping import KNOWN_COLUMNS, to_source
from index.elastic.pages import read
from index.elastic.writing.conflicts import action, done, resolution
from serving.tracing import spans

BYTES = 5_000_000  # of a request; servers take 100 MB unless told otherwise, and proxies before them less
DOCUMENTS, IN_FLIGHT = 512, 4  # Elasticsearch works on a request with one thread, and each costs both sides some ms
MALFORMED, MISSING, CONFLICT, TOO_LARGE = 400, 404, 409, 413
_OWN_FAULT = (MALFORMED, TOO_LARGE)  # of the document; all else that is refused would be so whatever the document
_CLOSED = ("cluster_block_exception", "index_not_found_exception")
_FIELD = re.compile(r'field(?:=| name )?\s*["\[](\w+)["\]]')


class Closed(Exception):
    """The index takes no writes: blocked for the end of a move, moved away from, or dropped. Nothing is lost: whoever
    writes looks for the live one again."""


class Bulk:
    """Safe to share between threads."""

    def __init__(self, url: str, client: Elasticsearch):
        self._url, self._client = url, client
        self._packed = True  # until the server turns out not to take vectors in base64
        self._pool = ThreadPoolExecutor(IN_FLIGHT, thread_name_prefix="bulk")

    def write(
        self, index: str, documents: Sequence[Document], written: int, force: bool, check: Callable[[], object]
    ) -> dict[str, Outcome]:
        """By id; at most one document an id comes in. `check` raises where nothing more may be sent to the index."""
        deliver = spans.carried(self._deliver)
        # The first part is on its way while the next is being made: threads that make theirs side by side all end late.
        sent = [
            self._pool.submit(deliver, index, part, lines, written, force, check)
            for part, lines in self._parts(documents, written)
        ]
        wait(sent)  # nothing may be under way any more when one of them raises
        outcomes = dict[str, Outcome]()
        for one in sent:
            outcomes |= one.result()
        return outcomes

    def delete(self, index: str, hits: Sequence[dict[str, Any]], check: Callable[[], object]) -> int:
        """Of found documents those that nobody changed since; how many."""
        retry, removed, left = Retry(self._url, check=check), 0, list(hits)
        while left:
            operations = [
                {"delete": {"_id": hit["_id"], "if_seq_no": hit["_seq_no"], "if_primary_term": hit["_primary_term"]}}
                for hit in left
            ]
            response = retry.call(lambda: self._client.bulk(index=index, operations=operations))  # noqa: B023
            items = [item["delete"] for item in response["items"]]
            removed += sum(item["status"] < 300 for item in items)
            sick = [item for item in items if "error" in item and item["status"] != CONFLICT]
            left = [hit for hit, item in zip(left, items, strict=True) if item in sick]
            if sick:
                wait_for(sick, retry)
        return removed

    def _parts(self, documents: Sequence[Document], written: int) -> Iterator[tuple[list[Document], list[bytes]]]:
        """Documents with their lines, as many as go into one request."""
        part, lines, size = list[Document](), list[bytes](), 0
        for document in documents:
            head, source = _lines(document, document.version, written, self._packed)
            if part and (len(part) == DOCUMENTS or size + len(source) > BYTES):
                yield part, lines
                part, lines, size = [], [], 0
            part.append(document)
            lines += [head, source]
            size += len(source)
        if part:
            yield part, lines

    def _deliver(
        self,
        index: str,
        part: list[Document],
        lines: list[bytes],
        written: int,
        force: bool,
        check: Callable[[], object],
    ) -> dict[str, Outcome]:
        retry, outcomes = Retry(self._url, check=check), dict[str, Outcome]()
        plain, numbers = set[str](), dict[str, int]()  # tried with vectors as numbers; above a document's own version
        while part:
            sick, conflicts, again = list[dict[str, Any]](), list[tuple[Document, str]](), list[Document]()
            for document, item in zip(part, self._send(index, part, lines, retry), strict=True):
                status = item["status"]
                if status == CONFLICT:
                    conflicts.append((document, reason(item.get("error"))))
                elif status == MALFORMED and self._packed and document.id not in plain:
                    again.append(document)
                    plain.add(document.id)
                elif status < 300 or status in _OWN_FAULT:
                    outcomes[document.id] = _outcome(document, item)
                    retry.progress()
                else:
                    again.append(document)
                    sick.append(item)
            if any(outcomes[id].status == "indexed" for id in plain & outcomes.keys()):
                self._packed = False
            if conflicts:
                resolved = self._resolve(index, conflicts, written, force, retry)
                outcomes |= {id: one for id, one in resolved.items() if isinstance(one, Outcome)}
                numbers |= {id: one for id, one in resolved.items() if isinstance(one, int)}
                again += [document for document, _ in conflicts if document.id not in outcomes]
            part, lines = again, [line for one in again for line in self._lines(one, numbers, written, plain)]
            if sick:
                wait_for(sick, retry)
        return outcomes

    def _resolve(
        self, index: str, conflicts: list[tuple[Document, str]], written: int, force: bool, retry: Retry
    ) -> dict[str, Outcome | int]:
        """By id, what `settled` says."""
        ids = [document.id for document, _ in conflicts]
        stored = read(retry, self._client, index, ids, KNOWN_COLUMNS)
        resolved, unclear = dict[str, Outcome | int](), ""
        for (document, said), found in zip(conflicts, stored, strict=True):
            result = resolution(document, found, said, written, force)
            if result is None:
                unclear = said
            else:
                resolved[document.id] = result
        if unclear:
            retry.pause(f"{CONFLICT} {unclear}")
        return resolved

    def _lines(self, document: Document, numbers: dict[str, int], written: int, plain: set[str]) -> tuple[bytes, bytes]:
        number = numbers.get(document.id, document.version)
        return _lines(document, number, written, self._packed and document.id not in plain)

    def _send(self, index: str, part: list[Document], lines: list[Any], retry: Retry) -> list[dict[str, Any]]:
        """Status and error of each; what is too large together is sent in halves."""
        wanted = ["items.*.status", "items.*.error"]
        # By an alias that only this index has: by its name, one that was dropped would be made anew by the first write.
        request = partial(self._client.bulk, index=writes_to(index), require_alias=True, filter_path=wanted)
        try:
            response = retry.call(partial(request, operations=lines))
        except ApiError as error:
            if error.status_code != TOO_LARGE:
                raise
            if len(part) == 1:
                return [{"status": TOO_LARGE, "error": {"reason": "description: larger than the server takes"}}]
            half = len(part) // 2
            first = self._send(index, part[:half], lines[: 2 * half], retry)
            return first + self._send(index, part[half:], lines[2 * half :], retry)
        return [item["index"] for item in response["items"]]


def wait_for(sick: Sequence[dict[str, Any]], retry: Retry) -> None:
    """Until it may be better; an index that is closed will not be, and raises Closed."""
    worst = next((item for item in sick if item["error"].get("type") in _CLOSED), sick[0])
    said = f"{worst['status']} {reason(worst['error'])}"
    if worst["error"].get("type") in _CLOSED:
        raise Closed(said)
    retry.pause(said)


def _lines(document: Document, number: int, written: int, packed: bool) -> tuple[bytes, bytes]:
    return orjson.dumps(action(document, number)), orjson.dumps(to_source(document, written, packed))


def _outcome(document: Document, item: dict[str, Any]) -> Outcome:
    if item["status"] < 300:
        return done(document)
    said = reason(item.get("error"))
    field = _FIELD.search(said)
    return Outcome(document.id, "failed", f"{field[1]}: {said}" if field else said)
