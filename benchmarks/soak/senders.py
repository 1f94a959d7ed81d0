"""Producers of a soak: files that appear in a folder by rename, and Pub/Sub messages."""

from __future__ import annotations

import gzip
import json
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.soak.check.findings import AS_OF
from benchmarks.soak.check.history import FILE, MESSAGE, History, Record, rfc3339
from benchmarks.soak.traffic import Draft
from model.contract import COMPANY_FIELDS

TICK = 125_000  # microseconds: a file's time in eighths of a second is exact however it is kept


def line(draft: Draft) -> bytes:
    document = draft.document
    if document is None:
        return draft.raw
    row: dict[str, Any] = {"id": document.id}
    if document.deleted:
        row["deleted"] = True
    row |= {name: value for name in COMPANY_FIELDS if (value := getattr(document, name))}
    if not draft.untimed:
        row["updated_at"] = rfc3339(document.version)
    return json.dumps(row).encode()


class Files:
    """Drops files of JSON lines into a folder, each by rename and with a time that is exact."""

    def __init__(self, folder: Path, history: History, way: str = FILE):
        self.folder, self._history, self._way = folder, history, way
        self._written = 0
        self.markers: dict[str, int] = {}  # of each file: the number of the record that stands last in it
        self._staging = folder.with_name(f"{folder.name}.staging")  # out of the sight of whoever watches
        for one in (folder, self._staging):
            one.mkdir(parents=True, exist_ok=True)

    def next_name(self, ending: str = ".jsonl") -> str:
        self._written += 1
        return f"{self._way}-{self._written:05d}{ending}"

    def drop(self, name: str, drafts: list[Draft], half_first: Callable[[], object] | None = None) -> list[Record]:
        """`half_first` is called while half of the file is there, for whoever watches; then all of it is."""
        written = int(time.time() * 1e6) // TICK * TICK
        content, places = bytearray(), []
        for draft in drafts:
            places.append(len(content))
            content += line(draft) + b"\n"
        packed = gzip.compress(bytes(content)) if name.endswith(".gz") else bytes(content)
        if half_first:
            self._history.half_files.add(name)
            (self.folder / name).write_bytes(packed[: len(packed) // 2])
            half_first()
        partial = self._staging / name
        partial.write_bytes(packed)
        os.utime(partial, ns=(written * 1000, written * 1000))
        records = [
            self._history.add(self._record(draft, name, place, written))
            for draft, place in zip(drafts, places, strict=True)
        ]
        self.markers[name] = records[-1].number
        partial.rename(self.folder / name)
        return records

    def drop_letters(self, name: str, letters: list[dict], drafts: list[Draft]) -> None:
        """Dead letters that were put right, each with the draft of what it says now."""
        lines = []
        for row, letter in enumerate(letters):
            as_of = AS_OF.search(letter["source"])
            lines.append(json.dumps({**letter, "source": f"{name}, byte {row}{as_of[0] if as_of else ''}"}))
        for row, draft in enumerate(drafts):
            self._history.add(self._record(draft, name, row, 0))
        (self.folder / name).write_text("\n".join(lines) + "\n")

    def _record(self, draft: Draft, name: str, place: int, written: int) -> Record:
        document = draft.document
        if document and draft.untimed:
            document = replace(document, version=written)
        source = f"{name}, byte {place}"
        return Record(self._way, draft.kind, time.time(), source, draft.id, document, draft.reason, draft.untimed)


class Messages:
    """Publishes to a topic; a second subscription tells when each was published: the version of one without."""

    def __init__(self, publish: Callable[[bytes], str], history: History):
        self._publish, self._history = publish, history
        self._undated: dict[str, int] = {}  # of a message: the number of its record
        self._versions: dict[str, int] = {}  # of those that came back before they were noted
        self._lock = threading.Lock()

    def send(self, draft: Draft) -> None:
        sent = time.time()
        message = self._publish(line(draft))
        source = f"message {message}"
        record = self._history.add(
            Record(MESSAGE, draft.kind, sent, source, draft.id, draft.document, draft.reason, draft.untimed)
        )
        if not (draft.untimed and draft.document):
            return
        with self._lock:
            if message in self._versions:
                self._history.date(record.number, self._versions[message])
            self._undated[message] = record.number

    def published(self, message: str, version: int) -> None:
        with self._lock:
            self._versions[message] = version
            if message in self._undated:
                self._history.date(self._undated[message], version)
