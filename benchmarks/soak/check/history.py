"""The oracle of a soak: everything that was sent, and what the index must hold because of it."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from index.document import Document, Order

FILE, BATCH, REPLAY, MESSAGE = "file", "batch", "replay", "message"  # the ways in


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def rfc3339(version: int) -> str:
    """Our own: an oracle takes no reading of times from what it judges."""
    return (_EPOCH + timedelta(microseconds=version)).isoformat()


def microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)


@dataclass(frozen=True)
class Record:
    """One delivery of one record. `document` is what it says, None where it must become a dead letter."""

    way: str
    kind: str
    sent: float  # seconds since 1970, as all times here
    source: str  # as a dead letter names the delivery: "NAME, byte N" or "message ID"
    id: str = ""
    document: Document | None = None
    reason: str = ""  # of a bad record: the field that its dead letter must name
    untimed: bool = False  # its version is its file's or message's time
    number: int = -1

    @property
    def order(self) -> Order:
        assert self.document is not None
        return self.document.order

    def __str__(self) -> str:
        if self.document is None:
            return f"record {self.number}, a bad one by {self.way} ({self.source})"
        what = "the deletion" if self.document.deleted else "the company"
        return f"record {self.number}, {what} of version {self.document.version} by {self.way} ({self.source})"


@dataclass(frozen=True)
class Purge:
    """Tombstones written before `before` may be gone from `began` on."""

    began: float
    before: float


@dataclass
class History:
    """For all threads. Records stand in the order of sending."""

    records: list[Record] = field(default_factory=list)
    settled: dict[int, float] = field(default_factory=dict)  # number of a record: when the index was seen to have it
    purges: list[Purge] = field(default_factory=list)
    half_files: set[str] = field(default_factory=set)  # names of files that were there half for a while

    def __post_init__(self) -> None:
        self._lock = threading.RLock()
        self._of_id: dict[str, list[Record]] = defaultdict(list)
        for record in self.records:
            self._of_id[record.id].append(record)

    def add(self, record: Record) -> Record:
        """As it is kept, with its number."""
        with self._lock:
            numbered = replace(record, number=len(self.records))
            self.records.append(numbered)
            self._of_id[record.id].append(numbered)
            return numbered

    def date(self, number: int, version: int) -> None:
        """An untimed message has its version once Pub/Sub has said when it was published."""
        with self._lock:
            record = self.records[number]
            assert record.number == number and record.document is not None
            dated = replace(record, document=replace(record.document, version=version))
            self.records[number] = dated
            of_id = self._of_id[record.id]
            of_id[next(place for place, one in enumerate(of_id) if one.number == number)] = dated

    def settle(self, number: int, at: float) -> None:
        with self._lock:
            self.settled.setdefault(number, at)

    def of(self, id: str) -> list[Record]:
        """The good records of a company."""
        with self._lock:
            return [record for record in self._of_id.get(id, ()) if record.document is not None]

    def ids(self) -> list[str]:
        with self._lock:
            return [id for id, records in self._of_id.items() if any(one.document for one in records)]

    def winner(self, id: str) -> Record | None:
        """What must be in the index when all that was sent has been taken in, in whatever order."""
        return max(self.of(id), key=lambda record: record.order, default=None)

    def settled_before(self, id: str, moment: float) -> Record | None:
        """The newest that the index was seen to have by then: nothing older may be seen afterwards."""
        seen = [record for record in self.of(id) if self.settled.get(record.number, moment) < moment]
        return max(seen, key=lambda record: record.order, default=None)

    def match(self, id: str, version: int, description: str) -> Record | None:
        """The first delivery of what an answer shows."""
        for record in self.of(id):
            document = record.document
            assert document is not None
            if (document.version, document.description) == (version, description) and not document.deleted:
                return record
        return None

    def described(self, description: str) -> list[Record]:
        """Those, of any company, that have this description: each was made for one company only."""
        return [one for one in self.records if one.document and description and one.document.description == description]

    def may_be_purged(self, record: Record) -> bool:
        """A tombstone is written after it was sent, so that a later one cannot have been old enough."""
        return any(record.sent < purge.before for purge in self.purges)

    def bad(self) -> Iterator[Record]:
        return (record for record in list(self.records) if record.document is None)

    def write(self, path: Path, **beside: Sequence[Any]) -> None:
        """For whoever looks into a finding; `beside` are other things that were seen, as dataclasses, each under the
        name that its lines have."""
        with path.open("w") as file:
            for record in self.records:
                document = record.document
                kept = None if document is None else {**asdict(replace(document, embedding=None))}
                settled = self.settled.get(record.number)
                file.write(json.dumps({**asdict(replace(record, document=None)), "document": kept, "settled": settled}))
                file.write("\n")
            for name, seen in beside.items():
                file.writelines(json.dumps({name: asdict(one)}) + "\n" for one in seen)
