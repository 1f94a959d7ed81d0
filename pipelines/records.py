"""What a company record is: as it arrives, the names of its fields, the object in its line of JSON, its version.

A bad one says why: the field by its name, the value quoted. transforms/parse.py makes companies of the good ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal, NoReturn

from common.errors import InputError
from index.document import Document
from model.contract import COMPANY_FIELDS

FIELDS = ("id", *COMPANY_FIELDS, "updated_at", "deleted")
MAX_RECORD_BYTES = 4 << 20  # a sound one has far less; some of what it takes in memory is ten times as much
MAX_DESCRIPTION_BYTES = 500_000  # a hundred times what any encoder reads; more is a file in the wrong place
# Of one record: a letter or two may become an object of 60 bytes, a pair of braces one of 200. No description that is
# taken has as many commas, and no sound one as many brackets.
MAX_VALUES = MAX_DESCRIPTION_BYTES
MAX_NESTED = 100_000
FEW_BYTES = 1 << 16  # have too few of either to be counted
QUOTED = 60  # letters of a value
QUOTED_BYTES = 1000  # of a record that is too large to be kept
NOT_JSON, UNREADABLE = "not JSON", "cannot be read"  # kinds of reasons
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d):(\d\d)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)", re.ASCII)

Row = dict[str, Any]
Stage = Literal["read", "parse", "encode", "index", "replay"]  # at which a record may fail


class BadRecord(ValueError):
    """A record that is no company; the message begins with the field, the kind quotes nothing and is one of a few."""

    def __init__(self, reason: str, kind: str):
        super().__init__(reason)
        self.kind = kind


class TooLarge(BadRecord):
    """One that would take more memory than a record may."""

    def __init__(self, reason: str):
        super().__init__(reason, "too large")


class FileUnreadable(InputError):
    """A file that ends too early, or is not what its name says."""


@dataclass(frozen=True)
class RawRecord:
    """As it comes out of a file or a message, before anybody looked into it."""

    record: bytes | Row  # a line or message of JSON, or a row with its names
    source: str  # for people: the file and the place in it, or the message
    time: int | None = None  # microseconds: when its message was published or its file modified; None: nobody knows
    fault: str = ""  # why there is no record to be had, where the reader itself could tell
    kind: str = UNREADABLE  # of that fault, as it is counted: one of a few
    stage: Stage = "parse"  # of that fault: "read" where it is the whole file's
    mapped: bool = False  # its names are the fields' own, whatever --columns says
    trace: str = ""  # `traceparent` of its message, where that is traced


@dataclass(frozen=True)
class Origin:
    """The file that records come from, and when it was modified, in microseconds."""

    path: str
    time: int | None = None

    def record(self, content: bytes | Row, place: str, fault: str = "", kind: str = UNREADABLE) -> RawRecord:
        return RawRecord(content, f"{self.path}, {place}", self.time, fault, kind)


@dataclass(frozen=True)
class Company:
    """A company as it arrived, without a vector, and where it came from."""

    document: Document
    source: str
    arrived: int | None = None  # microseconds: the time of its message or file
    trace: str = ""  # as of its record


@dataclass(frozen=True)
class Columns:
    """Which of a record's names stands for which field."""

    names: Mapping[str, str]

    def __post_init__(self) -> None:
        unknown = [field for field in self.names if field not in FIELDS]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is not a field of a company; fields are {', '.join(FIELDS)}")

    def fields(self, row: Row) -> tuple[Row, int]:
        """The values of the fields that are there, and how many other names there were."""
        found = {}
        for field in FIELDS:
            name = self.names.get(field, field)
            if name in row:
                found[field] = row[name]
        return found, len(row) - len(found)

    @property
    def taken(self) -> frozenset[str]:
        """The names that are read of a record, whatever else is in it."""
        return frozenset(self.names.get(field, field) for field in FIELDS)


SAME_NAMES = Columns({})


def decode(line: bytes) -> Row:
    """The object in a line of JSON. Broken UTF-8 and NUL stay in their fields, for whoever checks those to name."""
    if len(line) > FEW_BYTES:
        _check_size(line)
    text = line.removeprefix(b"\xef\xbb\xbf").decode(errors="surrogateescape")
    try:
        row = json.loads(text, strict=False, object_pairs_hook=_unique, parse_constant=_no_number)
    except RecursionError:
        raise BadRecord(f"record: {quote(text)} is nested too deeply", "too large") from None
    except BadRecord:
        raise
    except ValueError as error:
        raise BadRecord(f"record: {quote(text)} is not JSON: {error}", NOT_JSON) from None
    if not isinstance(row, dict):
        refuse("record", row, "a JSON object", NOT_JSON)
    return row


def refuse(field: str, value: object, wanted: str, kind: str) -> NoReturn:
    given = "missing; it must be" if value is None else f"{quote(value)} is not"
    raise BadRecord(f"{field}: {given} {wanted}", "missing" if value is None else kind)


def quote(value: object) -> str:
    quoted = repr(value[: QUOTED + 1] if isinstance(value, str | bytes | list | tuple) else value)
    return quoted if len(quoted) <= QUOTED else f"{quoted[:QUOTED]}..."


def _check_size(line: bytes) -> None:
    if len(line) > MAX_RECORD_BYTES:
        raise TooLarge(f"record: {quote(line)} has {len(line):,} bytes; {MAX_RECORD_BYTES:,} are read")
    values, nested = line.count(b",") + 1, line.count(b"{") + line.count(b"[")
    if values > MAX_VALUES or nested > MAX_NESTED:
        raise TooLarge(
            f"record: {quote(line)} has {values:,} values and {nested:,} nested objects and lists; "
            f"{MAX_VALUES:,} and {MAX_NESTED:,} are read"
        )


def _unique(pairs: list[tuple[str, Any]]) -> Row:
    row = dict(pairs)
    if len(row) < len(pairs):
        seen: set[str] = set()
        for name, value in pairs:
            if name in seen:
                raise BadRecord(
                    f"{ascii(name[:QUOTED])[1:-1]}: {quote(value)} is a second value under the same name", "twice"
                )
            seen.add(name)
    return row


def _no_number(constant: str) -> NoReturn:
    raise BadRecord(f"record: {constant} is not JSON", NOT_JSON)


# times, as records have them and as versions: microseconds since 1970


def microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)


def utc(moment: date) -> datetime:
    """Without a zone, as Parquet may have it, a time is of UTC; a day is its midnight."""
    if not isinstance(moment, datetime):
        return datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def rfc3339(time: int) -> str:
    return (_EPOCH + timedelta(microseconds=time)).isoformat().replace("+00:00", "Z")


def readable_time(time: int) -> str:
    """Also of a time that no calendar has."""
    try:
        return rfc3339(time)
    except OverflowError:
        return f"{time // 1_000_000:,} seconds since 1970"


def parse_rfc3339(value: object) -> datetime | None:
    """None of what is no text of RFC 3339."""
    match = _TIME.fullmatch(value) if isinstance(value, str) else None
    if match:
        day, minute, second, fraction, zone = match.groups()
        leap = second == "60"
        text = f"{day}T{minute}:{'59' if leap else second}.{(fraction or '')[:6]:0<6}{zone.upper()}"
        try:
            return datetime.fromisoformat(text) + timedelta(seconds=leap)
        except (ValueError, OverflowError):
            pass
    return None
