"""Files as they appear or change: each is read whole, by one worker."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import apache_beam as beam
from apache_beam.io.filesystem import FileMetadata
from apache_beam.io.filesystems import FileSystems
from apache_beam.io.watch import PollResult, Watch
from apache_beam.utils.timestamp import Timestamp

from pipelines.io.files import END, Part, modified, records
from pipelines.records import SAME_NAMES, Columns, FileUnreadable, RawRecord


class WatchFiles(beam.PTransform[Any, beam.PCollection[RawRecord]]):
    """Also those that come later, and again those that change. Unspread: a stream would hold a shuffle's output back.

    A file that cannot be read is a dead letter of its own, and what was read of it before stays good."""

    def __init__(self, pattern: str, interval: float, columns: Columns):
        super().__init__()
        self._pattern, self._interval, self._columns = pattern, interval, columns

    def expand(self, begin: Any) -> beam.PCollection[RawRecord]:
        found: beam.PCollection[RawRecord] = (
            begin
            | "Watch" >> _Matches(self._pattern, self._interval)
            | "Split" >> beam.Map(whole).with_output_types(Part)
            | "Records" >> beam.FlatMap(records_or_fault, self._columns).with_output_types(RawRecord)
        )
        return found


class _Matches(beam.PTransform[Any, beam.PCollection[FileMetadata]]):
    """As Beam's MatchContinuously, down to the names and keys that a running job is updated by; but that one ends where
    a file has no time, or the store is away for a moment."""

    def __init__(self, pattern: str, interval: float):
        super().__init__()
        self._pattern, self._interval = pattern, interval

    def expand(self, begin: Any) -> beam.PCollection[FileMetadata]:
        files: beam.PCollection[FileMetadata] = (
            begin
            | "Impulse" >> beam.Create([self._pattern])
            | "Watch" >> Watch(_look, poll_interval=self._interval, output_key_fn=_path_and_time)
            | "DropPattern" >> beam.Map(_second).with_output_types(FileMetadata)
        )
        return files


def _look(pattern: str) -> PollResult[FileMetadata]:
    now = Timestamp.now()
    try:
        found = FileSystems.match([pattern])[0].metadata_list
    except OSError as error:  # Beam's own among them
        logging.warning("%s cannot be looked for, and will be again: %s", pattern, " ".join(str(error).split()))
        found = []
    return PollResult.incomplete(found, timestamp=now).with_watermark(now)


def _path_and_time(file: FileMetadata) -> tuple[str, float]:
    return file.path, file.last_updated_in_seconds


def _second(pair: tuple[str, FileMetadata]) -> FileMetadata:
    return pair[1]


def whole(file: FileMetadata) -> Part:
    return file.path, 0, END, modified(file)


def records_or_fault(part: Part, columns: Columns = SAME_NAMES) -> Iterator[RawRecord]:
    try:
        yield from records(part, columns)
    except FileUnreadable as error:
        yield RawRecord(b"", part[0], part[3] or None, f"file: {error}", stage="read")
