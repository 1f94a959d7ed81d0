"""What could not be taken in: the record, where it failed and why, kept as JSON to be put right and replayed."""

from __future__ import annotations

import json
import re
import uuid
from dataclasses import asdict, dataclass
from datetime import date, datetime
from typing import IO, Any, Literal

import apache_beam as beam
from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from apache_beam.pvalue import TaggedOutput

from index.document import Document
from model.contract import COMPANY_FIELDS
from pipelines.options import TOPIC
from pipelines.records import BadRecord, RawRecord, Row, Stage, decode, microseconds, quote, rfc3339, utc

DEAD: Literal["dead"] = "dead"  # the output of a step for those that it refuses
AFTER_PARSING = ("encode", "index")  # records of these stages have the fields' own names
NO_LETTER = "not a dead letter"  # a kind of reasons
ENDING, UNFINISHED = ".jsonl", ".part"  # of files
_DATED = re.compile(r"(.*), as of (\d{4}-\S+Z)", re.DOTALL)


@dataclass(frozen=True)
class DeadLetter:
    """One record that was refused, at which stage and why."""

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
            raise BadRecord(f"{missing[0]}: missing; a line of a replay is a dead letter, got {quote(row)}", NO_LETTER)
        if not isinstance(row["record"], str | dict):
            raise BadRecord(f"record: {quote(row['record'])} is neither an object nor a text", NO_LETTER)
        return cls(**{name: row[name] for name in cls.__dataclass_fields__})


Letter = TaggedOutput[Literal["dead"], DeadLetter]


def of_raw(record: bytes | Row, stage: Stage, reason: str, source: str, at: int, time: int | None = None) -> DeadLetter:
    """`time` is that of the record's file or message. It goes beside the source: the record stays what it was, be it an
    object or not, and a replay makes it no newer."""
    source, kept = dated(source, time), record
    if isinstance(record, bytes):
        try:
            kept = decode(record)
        except BadRecord:
            return DeadLetter(record.decode(errors="surrogateescape"), stage, reason, source, rfc3339(at))
    assert isinstance(kept, dict)
    return DeadLetter(kept, stage, reason, source, rfc3339(at))


def of_document(document: Document, stage: Stage, reason: str, source: str, at: int) -> DeadLetter:
    """With its version: a replay must not make it newer than it is."""
    fields = {name: value for name in COMPANY_FIELDS if (value := getattr(document, name))}
    record = {"id": document.id, **fields, "updated_at": rfc3339(document.version)}
    return DeadLetter({**record, "deleted": True} if document.deleted else record, stage, reason, source, rfc3339(at))


def dated(source: str, time: int | None) -> str:
    try:
        return source if time is None else f"{source}, as of {rfc3339(time)}"
    except OverflowError:  # no calendar has it, and no replay would take it
        return source


def undated(source: str) -> tuple[str, int | None]:
    """The source as it was, and the time beside it."""
    match = _DATED.fullmatch(source)
    try:
        return (match[1], microseconds(datetime.fromisoformat(match[2]))) if match else (source, None)
    except ValueError:
        return source, None


def _plain(value: Any) -> str:
    """Times as a replay reads them."""
    return utc(value).isoformat().replace("+00:00", "Z") if isinstance(value, date) else str(value)


# where they go


class WriteDeadLetters(beam.PTransform[beam.PCollection[DeadLetter], Any]):
    """To files of JSON lines in a folder, or to a topic."""

    def __init__(self, to: str):
        super().__init__()
        self._to = to

    def expand(self, letters: beam.PCollection[DeadLetter]) -> Any:
        if not TOPIC.fullmatch(self._to):
            return letters | "Files" >> beam.ParDo(DeadLetterFiles(self._to))
        from apache_beam.io.gcp.pubsub import WriteToPubSub

        lines = letters | "Json" >> beam.Map(DeadLetter.to_json).with_output_types(bytes)
        return lines | "Publish" >> WriteToPubSub(self._to)


class DeadLetterFiles(beam.DoFn):
    """A file a bundle that has any: in its place before the bundle counts as done, in batch and stream alike."""

    def __init__(self, folder: str):
        self._folder = folder

    def start_bundle(self) -> None:
        self._file: IO[bytes] | None = None

    def process(self, element: DeadLetter) -> None:
        if self._file is None:
            self._path = FileSystems.join(
                self._folder, f"{element.at[:19].replace(':', '')}-{uuid.uuid4().hex}{ENDING}"
            )
            self._file = FileSystems.create(self._path + UNFINISHED, compression_type=CompressionTypes.UNCOMPRESSED)
        self._file.write(element.to_json() + b"\n")

    def finish_bundle(self) -> None:
        if self._file is not None:
            self._file.close()
            FileSystems.rename([self._path + UNFINISHED], [self._path])
            self._file = None


# and how they come back


class Replay(beam.PTransform[beam.PCollection[RawRecord], beam.PCollection[RawRecord]]):
    """Records that are dead letters -> the records in those."""

    def expand(self, letters: beam.PCollection[RawRecord]) -> beam.PCollection[RawRecord]:
        revive = beam.Map(replay_or_fault).with_output_types(RawRecord)
        records: beam.PCollection[RawRecord] = letters | "Revive" >> revive
        return records


def replay(raw: RawRecord) -> RawRecord:
    """Without a time of its own, a record is as old as its file or message was; where nobody knew that, as its dead
    letter: whatever came since is newer."""
    if not isinstance(raw.record, bytes):
        raise BadRecord(f"record: {quote(raw.record)} is not a line of JSON; dead letters are", NO_LETTER)
    letter = DeadLetter.from_json(raw.record)
    source, time = undated(str(letter.source))
    if letter.stage == "read":
        raise BadRecord(f"record: none is in a letter about a whole file; --input {source} reads that again", NO_LETTER)
    try:
        record = letter.record.encode(errors="surrogateescape") if isinstance(letter.record, str) else letter.record
        at = microseconds(datetime.fromisoformat(letter.at))
    except UnicodeEncodeError:
        raise BadRecord(f"record: {quote(letter.record)} is not valid UTF-8", NO_LETTER) from None
    except (ValueError, TypeError):
        raise BadRecord(f"at: {quote(letter.at)} is not a time of RFC 3339", NO_LETTER) from None
    return RawRecord(record, source, at if time is None else time, mapped=letter.stage in AFTER_PARSING)


def replay_or_fault(raw: RawRecord) -> RawRecord:
    try:
        return replay(raw)
    except BadRecord as error:
        return RawRecord(raw.record, raw.source, fault=str(error), kind=error.kind)
