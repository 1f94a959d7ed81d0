"""From one record to a company, or to the reason why it is none: the field by its name, the value quoted."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn

from index.document import MAX_ID_BYTES, Document, is_unicode
from model.contract import COMPANY_FIELDS

FIELDS = ("id", *COMPANY_FIELDS, "updated_at", "deleted")
TEXTS = tuple(field for field in COMPANY_FIELDS if field not in ("description", "tags"))
MAX_RECORD_BYTES = 4 << 20  # a sound one has far less; some of what it takes in memory is ten times as much
MAX_DESCRIPTION_BYTES = 500_000  # a hundred times what any encoder reads; more is a file in the wrong place
MAX_TEXT_BYTES = 4096  # sectors and names are filtered by, and Elasticsearch ends such values at 32 kB
MAX_TAGS = 1000
# Of one record: a letter or two may become an object of 60 bytes, a pair of braces one of 200. No description that is
# taken has as many commas, and no sound one as many brackets.
MAX_VALUES = MAX_DESCRIPTION_BYTES
MAX_NESTED = 100_000
FEW_BYTES = 1 << 16  # have too few of either to be counted
TAG_SEPARATOR = "|"  # where a row has no lists
# A clock may be wrong by hours; a version from further ahead would lock out all that is true until then.
AHEAD = timedelta(days=1)
QUOTED = 60  # letters of a value
QUOTED_BYTES = 1000  # of a record that is too large to be kept

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d):(\d\d)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)", re.ASCII)

Row = dict[str, Any]


class BadRecord(ValueError):
    """A record that is no company; the message begins with the field."""


class TooLarge(BadRecord):
    """One that would take more memory than a record may."""


@dataclass(frozen=True)
class Company:
    """A company as it arrived, without a vector, and where it came from."""

    document: Document
    source: str
    timed: bool = True  # its version is its own or its message's, not that of whoever happened to read it


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


SAME_NAMES = Columns({})


def decode(line: bytes) -> Row:
    """The object in a line of JSON. Broken UTF-8 and NUL stay in their fields, for whoever checks those to name."""
    if len(line) > FEW_BYTES:
        _check_size(line)
    text = line.removeprefix(b"\xef\xbb\xbf").decode(errors="surrogateescape")
    try:
        row = json.loads(text, strict=False, object_pairs_hook=_unique, parse_constant=_no_number)
    except RecursionError:
        raise BadRecord(f"record: {quote(text)} is nested too deeply") from None
    except BadRecord:
        raise
    except ValueError as error:
        raise BadRecord(f"record: {quote(text)} is not JSON: {error}") from None
    if not isinstance(row, dict):
        _refuse("record", row, "a JSON object")
    return row


def parse(fields: Row, fallback_version: int, now: int) -> Document:
    """`fallback_version` is for a company that does not say when it was updated; times in microseconds."""
    id = _id(fields.get("id"))
    version = _version(fields.get("updated_at"), fallback_version, now)
    if _flag("deleted", fields.get("deleted")):
        return Document.tombstone(id, version)
    description = _text("description", fields.get("description"), MAX_DESCRIPTION_BYTES)
    if not description.strip():
        _refuse("description", fields.get("description"), "a text, which a company needs unless it is deleted")
    texts: Row = {field: _text(field, fields.get(field), MAX_TEXT_BYTES) for field in TEXTS}
    return Document(id, version, description=description, tags=_tags(fields.get("tags")), **texts)


def microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)


def rfc3339(time: int) -> str:
    return (_EPOCH + timedelta(microseconds=time)).isoformat().replace("+00:00", "Z")


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
                raise BadRecord(f"{ascii(name[:QUOTED])[1:-1]}: {quote(value)} is a second value under the same name")
            seen.add(name)
    return row


def _no_number(constant: str) -> NoReturn:
    raise BadRecord(f"record: {constant} is not JSON")


def _refuse(field: str, value: object, wanted: str) -> NoReturn:
    given = "missing; it must be" if value is None else f"{quote(value)} is not"
    raise BadRecord(f"{field}: {given} {wanted}")


def _id(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):  # registers number companies, and Parquet keeps numbers
        value = str(value)
    if not isinstance(value, str) or not value.strip():
        _refuse("id", value, f"a text of 1 to {MAX_ID_BYTES} bytes")
    return _text("id", value, MAX_ID_BYTES)


def _text(field: str, value: object, limit: int) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        _refuse(field, value, "a text")
    if "\0" in value:
        _refuse(field, value, "a text without NUL")
    if not is_unicode(value):
        _refuse(field, value, "valid UTF-8")
    size = len(value.encode())
    if size > limit:
        _refuse(field, value, f"a text of at most {limit:,} bytes; it has {size:,}")
    return value


def _tags(value: object) -> tuple[str, ...]:
    values = value.split(TAG_SEPARATOR) if isinstance(value, str) else [] if value is None else value
    if not isinstance(values, list | tuple) or not all(isinstance(tag, str) for tag in values):
        _refuse("tags", value, f"a list of texts, or one text of tags with {TAG_SEPARATOR} between them")
    if len(values) > MAX_TAGS:
        _refuse("tags", value, f"a list of at most {MAX_TAGS:,}; it has {len(values):,}")
    return tuple(tag for tag in (_text("tags", tag, MAX_TEXT_BYTES).strip() for tag in values) if tag)


def _flag(field: str, value: object) -> bool:
    if value is None or value == "":
        return False
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false", "1", "0"):
        return value.lower() in ("true", "1")
    _refuse(field, value, "true or false")


def _version(value: object, fallback: int, now: int) -> int:
    if value is None or value == "":
        return fallback
    moment = value if isinstance(value, datetime) else _moment(value)
    if moment.tzinfo is None:  # a Parquet column without a zone
        moment = moment.replace(tzinfo=UTC)
    version = microseconds(moment)
    if version < 0:
        _refuse("updated_at", value, "a time from 1970 on")
    if version > now + AHEAD // timedelta(microseconds=1):
        _refuse("updated_at", value, f"a time up to now, {rfc3339(now)}")
    return version


def _moment(value: object) -> datetime:
    match = _TIME.fullmatch(value) if isinstance(value, str) else None
    if match:
        date, minute, second, fraction, zone = match.groups()
        leap = second == "60"
        text = f"{date}T{minute}:{'59' if leap else second}.{(fraction or '')[:6]:0<6}{zone.upper()}"
        try:
            return datetime.fromisoformat(text) + timedelta(seconds=leap)
        except (ValueError, OverflowError):
            pass
    _refuse("updated_at", value, "a time of RFC 3339 such as 2024-05-01T12:00:00Z")
