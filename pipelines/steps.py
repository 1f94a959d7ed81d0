"""The steps of the pipeline as Beam runs them: each opens what it needs on the worker, and counts what it ends."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Literal

import apache_beam as beam
from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue

from pipelines.arrival import Arrival
from pipelines.company import SAME_NAMES, BadRecord, Columns, Company, decode, parse
from pipelines.dead_letter import DeadLetter, of_raw
from pipelines.overlap import Beside, Overlapped, Polled
from pipelines.services import Services
from pipelines.stages import Done, Stages
from pipelines.tally import count
from pipelines.unchanged import Task

DEAD: Literal["dead"] = "dead"
Letter = TaggedOutput[Literal["dead"], DeadLetter]
BATCH_BYTES = 8 << 20


class Parse(beam.DoFn):
    """Arrival -> Company, or a dead letter."""

    def __init__(self, columns: Columns, started: int):
        self._columns, self._started = columns, started

    def process(self, element: Arrival) -> Iterator[Company | Letter]:
        count("read")
        now = time.time_ns() // 1000
        try:
            if element.fault:
                raise BadRecord(element.fault)
            row = decode(element.record) if isinstance(element.record, bytes) else element.record
            fields, unknown = (SAME_NAMES if element.mapped else self._columns).fields(row)
            count("unknown_fields", unknown)
            version = self._started if element.time is None else element.time
            timed = element.time is not None or bool(fields.get("updated_at"))
            yield Company(parse(fields, version, now), element.source, timed)
        except BadRecord as error:
            count("bad")
            yield TaggedOutput(DEAD, of_raw(element.record, "parse", str(error), element.source, now))


class Batch(beam.DoFn):
    """Company -> list[Company], within a bundle: nothing is shuffled, and nothing waits for a batch to fill."""

    def __init__(self, size: int):
        self._size = size

    def start_bundle(self) -> None:
        self._batch: list[Company] = []
        self._bytes = 0

    def process(self, element: Company) -> Iterator[list[Company]]:
        self._batch.append(element)
        self._bytes += len(element.document.description)
        if len(self._batch) >= self._size or self._bytes >= BATCH_BYTES:
            yield self._batch
            self.start_bundle()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        if self._batch:
            window = GlobalWindow()
            yield WindowedValue(self._batch, window.max_timestamp(), (window,))


class Step(Beside):
    """A stage: what it ends is counted, what it buries goes out as dead, the rest to the next step."""

    def __init__(self, services: Services, *arguments: Any):
        super().__init__(*arguments)
        self._services = services

    def setup(self) -> None:
        super().setup()
        self._stages = Stages(self._services)

    def teardown(self) -> None:
        super().teardown()
        self._stages.close()

    def end(self, done: Done) -> Iterator[list[Task] | Letter]:
        for name, number in done.counts.items():
            count(name, number)
        for letter in done.dead:
            yield TaggedOutput(DEAD, letter)
        if done.tasks:
            yield done.tasks


class SkipUnchanged(Step, Overlapped):
    """list[Company] -> list[Task]."""

    def work(self, element: list[Company]) -> Done:
        return self._stages.skip_unchanged(element)


class Encode(Step, Overlapped):
    """list[Task] -> list[Task] with vectors."""

    def work(self, element: list[Task]) -> Done:
        return self._stages.encode(element)


class Write(Step, Overlapped):
    """list[Task] -> nothing but dead letters."""

    def work(self, element: list[Task]) -> Done:
        return self._stages.write(element)


class AllStages(Polled, Step):
    """(key, Company) -> nothing but dead letters."""

    def work(self, element: list[Company]) -> Done:
        return self._stages.all(element)
