"""Observations of a soak (searches, dead letters, runs), and findings of its checkers."""

from __future__ import annotations

import re
from dataclasses import dataclass

LOST, REVIVED, MIXED, DUPLICATED, UNACCOUNTED = KINDS = ("lost", "revived", "mixed", "duplicated", "unaccounted")
AS_OF = re.compile(r", as of (\S+)$")  # of a record without a time: that of its file or message


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, with its evidence."""

    kind: str
    id: str
    evidence: str


@dataclass(frozen=True)
class Shown:
    """A company as an answer shows it."""

    id: str
    version: int
    description: str
    score: float = 0.0


@dataclass(frozen=True)
class Reply:
    """One search: by a text or by a company, answered with a list or with a failure."""

    asked: float
    answered: float
    text: str = ""
    like: str = ""
    failure: str = ""
    missing: bool = False  # the company asked for is not there
    model: str = ""
    anchor: Shown | None = None
    hits: tuple[Shown, ...] = ()


@dataclass(frozen=True)
class Letter:
    """A dead letter of a soak."""

    source: str
    reason: str
    at: float


@dataclass(frozen=True)
class Run:
    """One life of a process that reads records."""

    way: str
    began: float
    ended: float


def delivery(source: str) -> str:
    """Where a dead letter says it came from, without the folder or subscription, and without the time it may name."""
    place = AS_OF.sub("", source)
    if ", message " in place:
        return f"message {place.rpartition(', message ')[2]}"
    return place.rpartition("/")[2]
