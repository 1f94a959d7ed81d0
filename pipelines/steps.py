"""The steps of the pipeline as Beam runs them: each opens what it needs on the worker, and counts what it ends."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Literal

import apache_beam as beam
from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import WindowedValue

from pipelines.arrival import Arrival
from pipelines.company import SAME_NAMES, BadRecord, Columns, Company, decode, parse
from pipelines.dead_letter import DeadLetter, of_document, of_raw
from pipelines.services import Services
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


class Connects(beam.DoFn):
    """A step with a client of the endpoint, from the first text on: many a run has none to encode."""

    _services: Services

    def setup(self) -> None:
        self._client: EmbeddingClient | None = None
        self._connecting = threading.Lock()

    def teardown(self) -> None:
        if self._client:
            self._client.close()

    def _connect(self) -> EmbeddingClient:
        with self._connecting:
            self._client = self._client or self._services.client()
            return self._client


class Encode(Connects):
    """list[Task] -> list[Task] with vectors. Some batches are encoded while the one before them is being written."""

    def __init__(self, services: Services, in_flight: int):
        self._services, self._in_flight = services, in_flight

    def setup(self) -> None:
        super().setup()
        self._pool = ThreadPoolExecutor(self._in_flight, thread_name_prefix="encode")

    def start_bundle(self) -> None:
        self._pending: deque[tuple[Future[Encoded], Any, Any]] = deque()

    def process(
        self, element: list[Task], window: Any = beam.DoFn.WindowParam, timestamp: Any = beam.DoFn.TimestampParam
    ) -> Iterator[Any]:
        self._pending.append((self._pool.submit(encode, self._connect, element), window, timestamp))
        while self._pending and (len(self._pending) > self._in_flight or self._pending[0][0].done()):
            yield from self._next()

    def finish_bundle(self) -> Iterator[Any]:
        while self._pending:
            yield from self._next()

    def teardown(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
        super().teardown()

    def _next(self) -> Iterator[Any]:
        future, window, timestamp = self._pending.popleft()
        done = future.result()
        count("encoded", done.encoded)
        count("dead", len(done.refused))
        for letter in done.dead:
            yield TaggedOutput(DEAD, WindowedValue(letter.value, timestamp, (window,)))
        if done.good:
            yield WindowedValue(done.good, timestamp, (window,))


class Write(Connects):
    """list[Task] -> nothing but dead letters: the end of all others is in the index."""

    def __init__(self, services: Services):
        self._services = services

    def setup(self) -> None:
        super().setup()
        self._index = self._services.index()

    def process(self, element: list[Task]) -> Iterator[Letter]:
        yield from self._write(element, again=True)

    def _write(self, tasks: list[Task], again: bool) -> Iterator[Letter]:
        outcomes = self._index.write([task.document for task in tasks])
        lost = []
        for task, outcome in zip(tasks, outcomes, strict=True):
            keeping = task.document.embedding is None and not task.document.deleted
            if outcome.status == "failed" and keeping and again:
                lost.append(task)
            elif outcome.status == "failed":
                count("dead")
                yield _dead(task, "index", outcome.reason)
            else:
                count("unchanged" if task.moves_on and outcome.status == "indexed" else outcome.status)
        if lost:
            yield from self._encode_and_write(lost)

    def _encode_and_write(self, tasks: list[Task]) -> Iterator[Letter]:
        """For companies whose stored vector was another's by the time of writing: somebody wrote in between."""
        recipe = self._services.contract.recipe
        texts = [replace(task, text=text_of(task.document, recipe), moves_on=False) for task in tasks]
        done = encode(self._connect, texts)
        count("encoded", done.encoded)
        count("dead", len(done.refused))
        yield from done.dead
        yield from self._write(done.good, again=False)


def _dead(task: Task, stage: Any, reason: str) -> Letter:
    letter: DeadLetter = of_document(task.document, stage, reason, task.source, _now())
    return TaggedOutput(DEAD, letter)


def _now() -> int:
    return time.time_ns() // 1000
