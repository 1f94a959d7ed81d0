"""A record as it comes out of a file or a message, before anybody looked into it."""

from __future__ import annotations

from dataclasses import dataclass

from pipelines.company import Row


@dataclass(frozen=True)
class Arrival:
    record: bytes | Row  # a line or message of JSON, or a row with its names
    source: str  # for people: the file and the place in it, or the message
    time: int | None = None  # microseconds; of a message, when it was published
    fault: str = ""  # why there is no record to be had, where the reader itself could tell
    mapped: bool = False  # its names are the fields' own, whatever --columns says
