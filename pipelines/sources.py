"""Where arrivals come from: files, files as they appear, Pub/Sub, and dead letters put right."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import apache_beam as beam
from apache_beam.io.fileio import MatchAll
from apache_beam.io.filesystem import FileMetadata

from pipelines.arrival import Arrival
from pipelines.company import SAME_NAMES, BadRecord, Columns
from pipelines.files import parts, read
from pipelines.replay import revive

Part = tuple[str, int, int]  # path, and the first and the last byte but one


class ReadFiles(beam.PTransform[Any, beam.PCollection[Arrival]]):
    """The files that a pattern names now; large ones in parts, over all workers."""

    def __init__(self, pattern: str, columns: Columns):
        super().__init__()
        self._pattern, self._columns = pattern, columns

    def expand(self, begin: Any) -> beam.PCollection[Arrival]:
        arrivals: beam.PCollection[Arrival] = (
            begin
            | "Pattern" >> beam.Create([self._pattern])
            | "Match" >> MatchAll()
            | "Split" >> beam.FlatMap(split).with_output_types(Part)
            | "Spread" >> beam.Reshuffle()
            | "Records" >> beam.FlatMap(records, self._columns).with_output_types(Arrival)
        )
        return arrivals


class WatchFiles(beam.PTransform[Any, beam.PCollection[Arrival]]):
    """Also those that come later. Unspread: a stream would hold a shuffle's output back."""

    def __init__(self, pattern: str, interval: float, columns: Columns):
        super().__init__()
        self._pattern, self._interval, self._columns = pattern, interval, columns

    def expand(self, begin: Any) -> beam.PCollection[Arrival]:
        from apache_beam.io.fileio import MatchContinuously
        from apache_beam.utils.timestamp import Timestamp

        watch = MatchContinuously(
            self._pattern, interval=self._interval, start_timestamp=Timestamp.of(time.time()), match_updated_files=True
        )
        arrivals: beam.PCollection[Arrival] = (
            begin
            | "Watch" >> watch
            | "Split" >> beam.FlatMap(split).with_output_types(Part)
            | "Records" >> beam.FlatMap(records, self._columns).with_output_types(Arrival)
        )
        return arrivals


class ReadMessages(beam.PTransform[Any, beam.PCollection[Arrival]]):
    """One record a message; its publish time is its version unless it names one."""

    def __init__(self, subscription: str | None = None, topic: str | None = None):
        super().__init__()
        self._subscription, self._topic = subscription, topic

    def expand(self, begin: Any) -> beam.PCollection[Arrival]:
        from apache_beam.io.gcp.pubsub import ReadFromPubSub

        messages = ReadFromPubSub(topic=self._topic, subscription=self._subscription, with_attributes=True)
        name = self._subscription or self._topic
        arrivals: beam.PCollection[Arrival] = (
            begin | "Messages" >> messages | "Arrive" >> beam.ParDo(_Arrive(str(name)))
        )
        return arrivals


class Replay(beam.PTransform[beam.PCollection[Arrival], beam.PCollection[Arrival]]):
    """Arrivals whose records are dead letters -> arrivals of the records in them."""

    def expand(self, letters: beam.PCollection[Arrival]) -> beam.PCollection[Arrival]:
        arrivals: beam.PCollection[Arrival] = letters | "Revive" >> beam.Map(_revived).with_output_types(Arrival)
        return arrivals


class _Arrive(beam.DoFn):
    def __init__(self, name: str):
        self._name = name

    def process(self, element: Any, timestamp: Any = beam.DoFn.TimestampParam) -> Iterator[Arrival]:
        published = element.publish_time
        # A runner that hands on no publish time has it as the element's own.
        at = timestamp.micros if published is None else round(published.timestamp() * 1e6)
        yield Arrival(element.data or b"", f"{self._name}, message {element.message_id}", at)


def split(file: FileMetadata) -> Iterator[Part]:
    for start, stop in parts(file.path, file.size_in_bytes):
        yield file.path, start, stop


def records(part: Part, columns: Columns = SAME_NAMES) -> Iterator[Arrival]:
    return read(*part, columns)


def _revived(arrival: Arrival) -> Arrival:
    try:
        return revive(arrival)
    except BadRecord as error:
        return Arrival(arrival.record, arrival.source, fault=str(error))
