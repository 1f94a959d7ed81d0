"""What could not be taken in: the record, where it failed and why, kept as JSON to be put right and replayed."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal

from index.document import Document
from model.contract import COMPANY_FIELDS
from pipelines.company import BadRecord, Row, decode, quote, rfc3339

Stage = Literal["read", "parse", "encode", "index", "replay"]
AFTER_PARSING = ("encode", "index")  # records of these stages have the fields' own names


@dataclass(frozen=True)
class DeadLetter:
    record: str | Row  # an object wherever there is one: easier to put right than JSON within JSON
    stage: Stage
    reason: str
    source: str
    at: str  # RFC 3339

    def to_json(self) -> bytes:
        """In ASCII: bytes that were not UTF-8 survive as escapes."""
        return json.dumps(asdict(self), default=_plain).encode()

    @classmethod
    def from_json(cls, line: bytes) -> DeadLetter:
        row = decode(line)
        missing = [name for name in cls.__dataclass_fields__ if name not in row]
        if missing:
            raise BadRecord(f"{missing[0]}: missing; a line of a replay is a dead letter, got {quote(row)}")
        if not isinstance(row["record"], str | dict):
            raise BadRecord(f"record: {quote(row['record'])} is neither an object nor a text")
        return cls(**{name: row[name] for name in cls.__dataclass_fields__})


def of_raw(record: bytes | Row, stage: Stage, reason: str, source: str, at: int) -> DeadLetter:
    if isinstance(record, bytes):
        try:
            return DeadLetter(decode(record), stage, reason, source, rfc3339(at))
        except BadRecord:
            return DeadLetter(record.decode(errors="surrogateescape"), stage, reason, source, rfc3339(at))
    return DeadLetter(record, stage, reason, source, rfc3339(at))


def of_document(document: Document, stage: Stage, reason: str, source: str, at: int) -> DeadLetter:
    """With its version: a replay must not make it newer than it is."""
    fields = {name: value for name in COMPANY_FIELDS if (value := getattr(document, name))}
    record = {"id": document.id, **fields, "updated_at": rfc3339(document.version)}
    return DeadLetter({**record, "deleted": True} if document.deleted else record, stage, reason, source, rfc3339(at))


def _plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
