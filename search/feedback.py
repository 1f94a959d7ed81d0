"""What people were shown and what they answered, kept beside the index: records are added, never changed."""

from __future__ import annotations

import fcntl
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import orjson

from model.errors import InputError

SIMILAR, NOT_SIMILAR, UNDO = "similar", "not_similar", "undo"


class FeedbackDown(InputError):
    """The store cannot be written or read; the message says why."""


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
    where: str

    @abstractmethod
    def add(self, records: Sequence[Record]) -> None:
        """All of them, or FeedbackDown."""

    @abstractmethod
    def scan(self) -> Iterator[Record]:
        """All that was added, each store in an order of its own."""


def open_feedback(index_url: str) -> Feedback:
    """The store that belongs to the index at an address; made with the first record."""
    if index_url.startswith(("http://", "https://")):
        from search.elastic_feedback import ElasticFeedback  # a second to import

        return ElasticFeedback(index_url)
    path = Path(index_url.removeprefix("lance://")).expanduser()
    return FileFeedback(path.with_name(f"{path.name}-feedback.jsonl"))


class FileFeedback(Feedback):
    """A line each, beside the directory of an embedded index."""

    def __init__(self, path: Path):
        self.path, self.where = path, str(path)

    def add(self, records: Sequence[Record]) -> None:
        content = b"".join(to_json(record) + b"\n" for record in records)
        try:
            with self.path.open("ab+") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                if _torn(file.fileno()):
                    content = b"\n" + content
                file.write(content)
                file.flush()
                if any(isinstance(record, Answer) for record in records):
                    os.fsync(file.fileno())  # people do not answer twice
        except OSError as error:
            raise FeedbackDown(f"{self.path} cannot be written: {error.strerror}") from error

    def scan(self) -> Iterator[Record]:
        """What a process killed as it wrote left behind is no record."""
        try:
            with self.path.open("rb") as file:
                for line in file:
                    try:
                        known = json.loads(line)
                    except ValueError:
                        continue
                    yield from_json(known)
        except FileNotFoundError:
            return
        except OSError as error:
            raise FeedbackDown(f"{self.path} cannot be read: {error.strerror}") from error


def _torn(file: int) -> bool:
    size = os.fstat(file).st_size
    return size > 0 and os.pread(file, 1, size - 1) != b"\n"


def to_json(record: Record) -> bytes:
    """Quickly: hundreds are written at a time, and whoever searches meanwhile waits."""
    return orjson.dumps({"kind": "shown" if isinstance(record, Shown) else "answer", **vars(record)})


def from_json(known: dict[str, Any]) -> Record:
    """Fields that a later release may add are left out."""
    kind = _KINDS[known["kind"]]
    given: dict[str, Any] = {field.name: known[field.name] for field in fields(kind) if field.name in known}
    return kind(**given | {name: tuple(value) for name, value in given.items() if isinstance(value, list)})
