"""What people were shown and what they answered, kept beside the index. Records are added and never
changed; lists that nobody answered go where the store grows too large."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import orjson

from common.errors import Outage
from index.open import backend_of

SIMILAR, NOT_SIMILAR, UNDO = "similar", "not_similar", "undo"
ANONYMOUS = "anonymous:"  # begins the name of a caller without a key, and of no other: names of keys have no colon


BOUND = 1 << 30  # bytes: some million lists


class FeedbackDown(Outage):
    """The store cannot be written or read; the message says why."""


class FeedbackFull(FeedbackDown):
    """The store is as large as it may get by such records; to wait is of no use."""

    def __init__(self, where: str, size: int, limit: int):
        super().__init__(where, size, limit)

    def __str__(self) -> str:
        where, size, limit = self.args
        return (
            f"{where} holds {size:,} bytes, and such records may fill {limit:,}; after `python -m search.labels` move "
            f"it away, or give more with --feedback_bytes"
        )


@dataclass(frozen=True)
class Shown:
    """A list that somebody was shown; its first company had the rank `offset` + 1."""

    id: str
    at: int  # microseconds
    who: str
    model: str
    text: str | None
    like: tuple[str, ...]
    unlike: tuple[str, ...]
    companies: tuple[str, ...]
    offset: int = 0


@dataclass(frozen=True)
class Answer:
    """What somebody said about one company of a list; `undo` takes back what they said before."""

    shown: str
    at: int  # microseconds
    who: str
    model: str
    anchor: str | None
    text: str | None
    candidate: str
    answer: str
    rank: int


Record = Shown | Answer
_KINDS: dict[str, type[Shown] | type[Answer]] = {"shown": Shown, "answer": Answer}


class Feedback(ABC):
    """A store of what was shown and answered: append-only, bounded."""

    where: str
    bound: int  # bytes that it never outgrows

    @abstractmethod
    def add(self, records: Sequence[Record]) -> None:
        """All of them, or FeedbackDown, or FeedbackFull."""

    @abstractmethod
    def scan(self) -> Iterator[Record]:
        """All that was added, each store in an order of its own."""


def open_feedback(index_url: str, bound: int = BOUND) -> Feedback:
    """The store that belongs to the index at an address, made with the first record, and never larger than `bound`
    bytes."""
    place = backend_of(index_url).beside(index_url, "feedback")
    if isinstance(place, Path):
        from search.feedback.file_store import FileFeedback

        return FileFeedback(place.with_name(f"{place.name}.jsonl"), bound)
    from search.feedback.elastic_store import ElasticFeedback

    return ElasticFeedback(place, bound)


def is_anonymous(who: str) -> bool:
    return who.startswith(ANONYMOUS)


def allowed(records: Sequence[Record], bound: int) -> int:
    """How large a store may get by these. Whoever searches fills it with lists, so those leave room for answers, and
    the answers of callers without a key for those of callers with one."""
    if any(isinstance(record, Shown) for record in records):
        return bound // 2
    return bound * 3 // 4 if any(is_anonymous(record.who) for record in records) else bound


def to_json(record: Record) -> bytes:
    """Quickly: hundreds are written at a time, and whoever searches meanwhile waits."""
    return orjson.dumps({"kind": "shown" if isinstance(record, Shown) else "answer", **vars(record)})


def from_json(known: dict[str, Any]) -> Record:
    """Fields that a later release may add are left out."""
    kind = _KINDS[known["kind"]]
    given: dict[str, Any] = {field.name: known[field.name] for field in fields(kind) if field.name in known}
    return kind(**given | {name: tuple(value) for name, value in given.items() if isinstance(value, list)})
