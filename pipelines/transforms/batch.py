"""Batches of companies: how they gather, and what a step of the pipeline makes of one."""

from __future__ import annotations

import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar

import apache_beam as beam
from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue

from index.document import Document
from pipelines.concurrency.in_flight import ConcurrentDoFn
from pipelines.io.dead_letters import DEAD, DeadLetter, Letter, of_document
from pipelines.metrics.counters import count, count_letter, ended
from pipelines.options import BATCH_SIZE
from pipelines.records import Company, Stage
from pipelines.services import Services, Session
from pipelines.transforms.traced import traced
from serving.tracing.start import start_worker

BATCH_BYTES = 8 << 20  # of descriptions


# how they gather: within a bundle, or in the runner's state where a stream's bundles are small


class BatchCompanies(beam.PTransform[beam.PCollection[Company], beam.PCollection[list[Company]]]):
    """Company -> list[Company]. With `max_wait`, in seconds, batches gather in the runner's state, which outlives a
    worker: a stream's bundles may hold one message each. Each of the `shards` fills batches of its own, and has all
    versions of a company."""

    def __init__(self, size: int = BATCH_SIZE, max_wait: float | None = None, shards: int = 1):
        super().__init__()
        self._size, self._max_wait, self._shards = size, max_wait, shards

    def expand(self, companies: beam.PCollection[Company]) -> beam.PCollection[list[Company]]:
        batches: beam.PCollection[list[Company]]
        if self._max_wait is None:
            batches = companies | "InBundle" >> beam.ParDo(Batch(self._size))
        else:
            batches = (
                companies
                | "Shard" >> beam.Map(shard, self._shards).with_output_types(tuple[int, Company])
                | "Gather" >> beam.GroupIntoBatches(self._size, max_buffering_duration_secs=self._max_wait)
                | "Values" >> beam.MapTuple(_values)
            )
        return batches


class Batch(beam.DoFn):
    """Company -> list[Company], within a bundle: nothing is shuffled, and nothing waits for a batch to fill."""

    def __init__(self, size: int):
        self._size = size

    def start_bundle(self) -> None:
        self._filling: Filling[Company] = Filling(self._size)

    def process(self, element: Company) -> Iterator[list[Company]]:
        if self._filling.add(element):
            yield self._filling.take()

    def finish_bundle(self) -> Iterator[WindowedValue]:
        if rest := self._filling.take():
            window = GlobalWindow()
            yield WindowedValue(rest, window.max_timestamp(), (window,))


class HasDocument(Protocol):
    """A company or a task."""

    @property
    def document(self) -> Document: ...


Item = TypeVar("Item", bound=HasDocument)


class Filling(Generic[Item]):
    """A batch until it is full: by number, or by the bytes of its descriptions."""

    def __init__(self, size: int):
        self._size = size
        self._items: list[Item] = []
        self._bytes = 0

    def add(self, item: Item) -> bool:
        """Whether it is full."""
        self._items.append(item)
        self._bytes += len(item.document.description)
        return len(self._items) >= self._size or self._bytes >= BATCH_BYTES

    def take(self) -> list[Item]:
        """What is in it; the next begins."""
        items, self._items, self._bytes = self._items, [], 0
        return items


def batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    filling: Filling[Item] = Filling(size)
    for item in items:
        if filling.add(item):
            yield filling.take()
    if rest := filling.take():
        yield rest


def shard(company: Company, shards: int) -> tuple[int, Company]:
    return zlib.crc32(company.document.id.encode()) % shards, company


def _values(key: int, companies: Iterable[Company]) -> list[Company]:
    return list(companies)


# what a step makes of one


@dataclass(frozen=True)
class Task:
    """A document to write. With a text it must be encoded first; without, it is a tombstone or keeps its vector.

    Model, text and its hash are of one contract; where the index is another model's by now, `company` is planned anew.
    """

    document: Document
    source: str
    text: str | None = None
    moves_on: bool = False  # nothing but its version is new
    arrived: int | None = None  # as its company
    trace: str = ""  # as of its company, or of the batch that began one

    @property
    def company(self) -> Company:
        """As it arrived: nothing of the model it was planned for is left."""
        document = replace(self.document, model="", text_hash="", embedding=None)
        return Company(document, self.source, self.arrived, self.trace)


@dataclass
class Done:
    """What a stage made of a batch: tasks for the next one, and those that have come to their end, counted."""

    tasks: list[Task] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    dead: list[DeadLetter] = field(default_factory=list)
    ages: list[float] = field(default_factory=list)  # seconds from the publication of what was written until then

    def refuse(self, one: Task | Company, stage: Stage, reason: str) -> None:
        self.counts["dead"] += 1
        self.dead.append(of_document(one.document, stage, reason, one.source, time.time_ns() // 1000))

    def then(self, stage: Callable[[list[Task]], Done]) -> Done:
        if not self.tasks:
            return self
        after = stage(self.tasks)
        return Done(after.tasks, self.counts + after.counts, self.dead + after.dead, self.ages + after.ages)


def outputs(done: Done) -> Iterator[list[Task] | Letter]:
    """What has come to its end is counted, what was refused goes out as dead, the rest to the next step."""
    for name, number in done.counts.items():
        count(name, number)
    ended(done.counts, done.ages)
    for letter in done.dead:
        refused = f"refused by the {'encoder' if letter.stage == 'encode' else 'index'}"
        count_letter(letter.stage, letter.reason, refused)
        yield TaggedOutput(DEAD, letter)
    if done.tasks:
        yield done.tasks


class StageDoFn(ConcurrentDoFn):
    """A batch -> a batch of tasks, and dead letters. What it needs is opened on the worker."""

    def __init__(self, services: Services, in_flight: int):
        super().__init__(in_flight)
        self._services = services

    def setup(self) -> None:
        start_worker(self._services.tracing)
        super().setup()
        self.session = Session(self._services)

    def worker(self) -> Callable[[Any], Done]:
        return traced(self.work, type(self).__name__)

    def teardown(self) -> None:
        super().teardown()
        self.session.close()

    def end(self, done: Done) -> Iterator[list[Task] | Letter]:
        return outputs(done)


def par_do(step: beam.DoFn) -> Any:
    """With the outputs `good` and `dead`. A transform of one step returns what this one `expand`s to: under a label of
    its own the step would have another name, and a running job is updated by the names of its steps."""
    return beam.ParDo(step).with_outputs(DEAD, main="good")
