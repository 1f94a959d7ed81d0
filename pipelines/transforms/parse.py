"""Records -> companies, or dead letters that name the field and quote the value."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import date, timedelta

import apache_beam as beam
from apache_beam.pvalue import TaggedOutput

from index.document import MAX_ID_BYTES, Document, is_unicode
from model.contract import COMPANY_FIELDS
from pipelines.io.dead_letters import DEAD, Letter, of_raw
from pipelines.metrics.counters import FieldNames, count, count_letter, watch
from pipelines.records import (
    MAX_DESCRIPTION_BYTES,
    SAME_NAMES,
    BadRecord,
    Columns,
    Company,
    RawRecord,
    Row,
    decode,
    microseconds,
    parse_rfc3339,
    readable_time,
    refuse,
    rfc3339,
    utc,
)

TEXTS = tuple(field for field in COMPANY_FIELDS if field not in ("description", "tags"))
MAX_TEXT_BYTES = 4096  # sectors and names are filtered by, and Elasticsearch ends such values at 32 kB
MAX_TAGS = 1000
TAG_SEPARATOR = "|"  # where a row has no lists
# A clock may be wrong by hours; a version from further ahead would lock out all that is true until then.
AHEAD = timedelta(days=1)
NOT_A_TEXT = "not a text"  # a kind of reasons


class Parse(beam.DoFn):
    """RawRecord -> Company, or a dead letter."""

    def __init__(self, columns: Columns):
        self._columns, self._names = columns, FieldNames(columns)

    def process(self, element: RawRecord) -> Iterator[Company | Letter]:
        count("read")
        now = time.time_ns() // 1000
        watch.read(element.time, now)
        try:
            if element.fault:
                raise BadRecord(element.fault, element.kind)
            row = decode(element.record) if isinstance(element.record, bytes) else element.record
            fields, unknown = (SAME_NAMES if element.mapped else self._columns).fields(row)
            count("unknown_fields", unknown)
            if not element.mapped:
                self._names.look_at(row, unknown)
            yield Company(parse(fields, element.time, now), element.source, element.time, element.trace)
        except BadRecord as error:
            count("bad")
            count_letter(element.stage, str(error), error.kind)
            letter = of_raw(element.record, element.stage, str(error), element.source, now, element.time)
            yield TaggedOutput(DEAD, letter)

    def finish_bundle(self) -> None:
        self._names.count()


def parse(fields: Row, arrived: int | None, now: int) -> Document:
    """`arrived` is the version of a company that does not say when it was updated; times in microseconds."""
    id = _id(fields.get("id"))
    version = _version(fields.get("updated_at"), arrived, now)
    if _flag("deleted", fields.get("deleted")):
        return Document.tombstone(id, version)
    description = _text("description", fields.get("description"), MAX_DESCRIPTION_BYTES)
    if not description.strip():
        refuse("description", fields.get("description"), "a text, which a company needs unless it is deleted", "blank")
    texts: Row = {field: _text(field, fields.get(field), MAX_TEXT_BYTES) for field in TEXTS}
    return Document(id, version, description=description, tags=_tags(fields.get("tags")), **texts)


def _id(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):  # registers number companies, and Parquet keeps numbers
        value = str(value)
    if not isinstance(value, str) or not value.strip():
        refuse("id", value, f"a text of 1 to {MAX_ID_BYTES} bytes", "blank" if isinstance(value, str) else NOT_A_TEXT)
    return _text("id", value, MAX_ID_BYTES)


def _text(field: str, value: object, limit: int) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        refuse(field, value, "a text", NOT_A_TEXT)
    if "\0" in value:
        refuse(field, value, "a text without NUL", "with NUL")
    if not is_unicode(value):
        refuse(field, value, "valid UTF-8", "not UTF-8")
    size = len(value.encode())
    if size > limit:
        refuse(field, value, f"a text of at most {limit:,} bytes; it has {size:,}", "too long")
    return value


def _tags(value: object) -> tuple[str, ...]:
    values = value.split(TAG_SEPARATOR) if isinstance(value, str) else [] if value is None else value
    if not isinstance(values, list | tuple) or not all(isinstance(tag, str) for tag in values):
        refuse("tags", value, f"a list of texts, or one text of tags with {TAG_SEPARATOR} between them", NOT_A_TEXT)
    if len(values) > MAX_TAGS:
        refuse("tags", value, f"a list of at most {MAX_TAGS:,}; it has {len(values):,}", "too many")
    return tuple(tag for tag in (_text("tags", tag, MAX_TEXT_BYTES).strip() for tag in values) if tag)


def _flag(field: str, value: object) -> bool:
    if value is None or value == "":
        return False
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false", "1", "0"):
        return value.lower() in ("true", "1")
    refuse(field, value, "true or false", "neither true nor false")


def _version(value: object, arrived: int | None, now: int) -> int:
    if value is None or value == "":
        return _arrived(arrived, now)
    moment = utc(value) if isinstance(value, date) else parse_rfc3339(value)
    if moment is None:
        refuse("updated_at", value, "a time of RFC 3339 such as 2024-05-01T12:00:00Z", "not a time")
    version = microseconds(moment)
    if version < 0:
        refuse("updated_at", value, "a time from 1970 on", "before 1970")
    if version > now + AHEAD // timedelta(microseconds=1):
        refuse("updated_at", value, f"a time up to now, {rfc3339(now)}", "in the future")
    return version


def _arrived(time: int | None, now: int) -> int:
    """The time of a file or message, held to the bounds of a record's own."""
    if time is None:
        raise BadRecord(
            "updated_at: missing, and the store tells no time of the file either; give the record one", "missing"
        )
    if not 0 <= time <= now + AHEAD // timedelta(microseconds=1):
        raise BadRecord(
            f"updated_at: missing, and the time of its file or message, {readable_time(time)}, is not from 1970 "
            f"up to now, {rfc3339(now)}; is a clock wrong?",
            "in the future" if time > 0 else "before 1970",
        )
    return time
