"""The steps of the pipeline as Beam runs them: each opens what it needs on the worker, and counts what it ends."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import apache_beam as beam
from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue

from pipelines.arrival import Arrival
from pipelines.company import SAME_NAMES, BadRecord, Columns, Company, decode, parse
from pipelines.dead_letter import DeadLetter, of_document, of_raw
from pipelines.overlap import Beside, Overlapped, Polled
from pipelines.services import Connection, Services
from pipelines.tally import count
from pipelines.unchanged import Task, newest, plan, text_of
from serving.client import EmbeddingClient, TextsRefused

DEAD: Literal["dead"] = "dead"
Letter = TaggedOutput[Literal["dead"], DeadLetter]
BATCH_BYTES = 8 << 20
EMPTY = "description: the model's text recipe {recipe!r} makes an empty text of this company"


class Parse(beam.DoFn):
    """Arrival -> Company, or a dead letter."""

    def __init__(self, columns: Columns, started: int):
        self._columns, self._started = columns, started

    def process(self, element: Arrival) -> Iterator[Company | Letter]:
        count("read")
        now = _now()
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


class SkipUnchanged(beam.DoFn):
    """list[Company] -> list[Task]."""

    def __init__(self, services: Services):
        self._services = services

    def setup(self) -> None:
        self._index = self._services.index()
        self._recipe = self._services.contract.recipe

    def process(self, element: list[Company]) -> Iterator[list[Task] | Letter]:
        companies = newest(element)
        count("stale", len(element) - len(companies))
        known = self._index.known(company.document.id for company in companies)
        tasks = []
        for company in companies:
            task = plan(company, known, self._recipe, self._services.contract.fingerprint)
            if isinstance(task, str):
                count(task)
            elif task.text == "":
                count("dead")
                yield _dead(task, "encode", EMPTY.format(recipe=self._recipe.template))
            else:
                tasks.append(task)
        if tasks:
            yield tasks


@dataclass(frozen=True)
class Encoded:
    """What came back for a batch of tasks; `refused` are the reasons, by id, of those without a vector."""

    tasks: list[Task]
    refused: dict[str, str]
    encoded: int

    @property
    def dead(self) -> Iterator[Letter]:
        for task in self.tasks:
            if task.document.id in self.refused:
                yield _dead(task, "encode", f"description: refused by the encoder: {self.refused[task.document.id]}")

    @property
    def good(self) -> list[Task]:
        return [task for task in self.tasks if task.document.id not in self.refused]


def encode(connect: Callable[[], EmbeddingClient], tasks: list[Task]) -> Encoded:
    """The client sorts by length and cuts into requests of equal work; without a text to send nobody connects."""
    asked = [task for task in tasks if task.text is not None]
    if not asked:
        return Encoded(tasks, {}, 0)
    refused: dict[str, str] = {}
    try:
        vectors, models = connect().embed([task.text for task in asked if task.text is not None])
    except TextsRefused as error:
        vectors, models = error.vectors, error.fingerprints
        refused = {asked[refusal.position].document.id: refusal.reason for refusal in error.refusals}
    made = {
        task.document.id: replace(task, document=replace(task.document, model=model, embedding=vector))
        for task, vector, model in zip(asked, vectors, models, strict=True)
    }
    return Encoded([made.get(task.document.id, task) for task in tasks], refused, len(asked) - len(refused))


class Connected(Beside):
    """A step that may have texts to encode."""

    def __init__(self, services: Services, in_flight: int):
        super().__init__(in_flight)
        self._services = services

    def setup(self) -> None:
        super().setup()
        self._connect = Connection(self._services)

    def teardown(self) -> None:
        super().teardown()
        self._connect.close()


class Encoding(Connected):
    def work(self, element: list[Task]) -> Encoded:
        return encode(self._connect, element)

    def end(self, done: Encoded) -> Iterator[list[Task] | Letter]:
        count("encoded", done.encoded)
        count("dead", len(done.refused))
        yield from done.dead
        if done.good:
            yield done.good


class Encode(Encoding, Overlapped):
    """list[Task] -> list[Task] with vectors."""


class EncodePolled(Polled, Encoding):
    """(key, list[Task]) -> list[Task] with vectors."""


@dataclass
class Written:
    counts: Counter[str] = field(default_factory=Counter)
    dead: list[Letter] = field(default_factory=list)


class Write(Connected, Overlapped):
    """list[Task] -> nothing but dead letters: the end of all others is in the index."""

    def setup(self) -> None:
        super().setup()
        self._index = self._services.index()

    def work(self, element: list[Task]) -> Written:
        done = Written()
        lost = self._write(element, done)
        if lost:
            self._write(self._encoded(lost, done), done)
        return done

    def end(self, done: Written) -> Iterator[Letter]:
        for name, number in done.counts.items():
            count(name, number)
        yield from done.dead

    def _write(self, tasks: list[Task], done: Written) -> list[Task]:
        """Gives back those that were to keep a stored vector which was another's by then: somebody wrote in between."""
        lost = []
        outcomes = self._index.write([task.document for task in tasks])
        for task, outcome in zip(tasks, outcomes, strict=True):
            if outcome.status != "failed":
                done.counts["unchanged" if task.moves_on and outcome.status == "indexed" else outcome.status] += 1
            elif task.document.embedding is None and not task.document.deleted:
                lost.append(task)
            else:
                done.counts["dead"] += 1
                done.dead.append(_dead(task, "index", outcome.reason))
        return lost

    def _encoded(self, tasks: list[Task], done: Written) -> list[Task]:
        recipe = self._services.contract.recipe
        texts = [replace(task, text=text_of(task.document, recipe), moves_on=False) for task in tasks]
        made = encode(self._connect, texts)
        done.counts.update(encoded=made.encoded, dead=len(made.refused))
        done.dead.extend(made.dead)
        return made.good


def _dead(task: Task, stage: Any, reason: str) -> Letter:
    letter: DeadLetter = of_document(task.document, stage, reason, task.source, _now())
    return TaggedOutput(DEAD, letter)


def _now() -> int:
    return time.time_ns() // 1000
