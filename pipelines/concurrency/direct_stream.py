"""Streams on Beam's direct runner, which has one thread for all: it reads nothing while a bundle waits, does nothing
else while it reads, and has acknowledged a message before anybody sees it.

So a step's bundles end at once, what they were given is worked on beside the runner (work_queue.py), and a timer
looks what came of it. What is held is known to this process alone. It leaves in one of three ways:

- as what came of it, after any number of failures of a kind that passes;
- as dead letters, where a failure will not pass: then nothing more is read, all that was read is written as dead
  letters, and only then the job fails, with how many there are and how to replay them;
- an interrupted stream reads no more and waits for all it holds; what is left after that time are dead letters, too.
"""

from __future__ import annotations

import logging
import math
import threading
import time
import uuid
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.transforms.userstate import TimerSpec, on_timer

from common.errors import CommandError, InputError
from index.errors import IndexMissing, IndexUnavailable, IndexUnusable, WrongModel
from pipelines.concurrency.work_queue import WorkQueue
from serving.endpoint.channel import ServingUnavailable

LOOK_SECONDS = 0.25  # messages that come are looks too
LONGEST_READ = 35.0  # seconds: the runner's own reads end after 30
TRIES = 6  # of an error that nobody knows: about 15 seconds
# Services, which somebody will mend; a runtime error is LanceDB's word for a full disk.
SICK = (ServingUnavailable, IndexUnavailable, IndexUnusable, IndexMissing, WrongModel, OSError, RuntimeError)
SICK_STATUS = (401, 403, 404, 429)  # of Elasticsearch, and all from 500 on
_TIMER = TimerSpec("look", TimeDomain.REAL_TIME)
_LOOK: Any = beam.DoFn.TimerParam(_TIMER)
log = logging.getLogger(__name__)


class StreamEnded(Exception):
    """Somebody ended the stream before all that it had read was in the index."""


class StreamFailed(InputError):
    """A stream came upon what no waiting mends. What it had read is in the dead letters."""

    def __init__(self, reason: str, dead: int):
        super().__init__(reason, dead)

    def __str__(self) -> str:
        reason, dead = self.args
        return (
            f"{reason}; {dead:,} records that were read and are not in the index were written as dead letters: "
            f"once the reason is gone, start the stream again and take them back with `--replay`"
        )


def tries(error: Exception) -> float:
    """A sick service is waited for as long as the stream lives, a bad configuration not at all."""
    status = getattr(error, "status_code", 0)
    if isinstance(error, SICK) or status in SICK_STATUS or status >= 500:
        return math.inf
    return 1 if isinstance(error, CommandError) else TRIES


class Reading:
    """Whether the direct runner takes messages from Pub/Sub. It starts a read only when nothing else is to be done:
    a turn that it takes in vain, once stopped, says that all read before has gone through the whole pipeline."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._turns = 0
        self._read: Any = None

    def install(self) -> None:
        """In place of the runner's own reading (Beam 2.77), which cannot be stopped without losing messages."""
        from apache_beam.runners.direct import transform_evaluator

        runners: Any = transform_evaluator._PubSubReadEvaluator
        self._stopped.clear()
        self._turns = 0
        if self._read is None:
            self._read = read = runners._read_from_pubsub

            def turn(evaluator: Any, timestamp_attribute: Any) -> Any:
                if not self._stopped.is_set():
                    return read(evaluator, timestamp_attribute)
                time.sleep(LOOK_SECONDS / 10)
                self._turns += 1
                return []

            runners._read_from_pubsub = turn

    def stop(self) -> None:
        self._stopped.set()

    @property
    def turns(self) -> int:
        """How many were in vain; without end where nothing is read from Pub/Sub."""
        return self._turns if self._read else time.monotonic_ns()


reading = Reading()


@dataclass
class Held:
    """What a step holds for all its bundles."""

    queue: WorkQueue[Any, Any]
    dead: int = 0  # records
    quiet: int | None = None  # the runner's turn at which there was nothing left to hand on

    def is_through(self) -> bool:
        """Whether all is ended, and has gone through the rest of the pipeline since: to be asked again and again."""
        turn = reading.turns
        if self.queue.held:
            self.quiet = None
        elif self.quiet is None:
            self.quiet = turn
        return self.quiet is not None and turn > self.quiet


held_by_step: dict[str, Held] = {}


class PolledDoFn(beam.DoFn):
    """(key, item) -> outputs of batches of items. The runner sets a step with a timer up anew for each bundle: the
    queue of the first one works for all of them, until the process ends."""

    def __init__(self, in_flight: int, *, size: int, max_wait: float):
        self._in_flight, self._size, self._max_wait = in_flight, size, max_wait
        self.name = uuid.uuid4().hex  # the same in all copies of this step

    @abstractmethod
    def open(self) -> None:
        """All that the work needs, once for all bundles."""

    @abstractmethod
    def work(self, items: list[Any]) -> Any:
        """In a thread, where Beam counts nothing."""

    @abstractmethod
    def end(self, done: Any) -> Iterator[Any]:
        """From what came of the work to the step's outputs, in Beam's own thread."""

    @abstractmethod
    def refuse(self, items: list[Any], reason: str) -> Any:
        """In place of what the work would have made of them, where it failed for good; for `end`."""

    def worker(self) -> Callable[[list[Any]], Any]:
        """What does the work: asked for once, after `open`."""
        return self.work

    def setup(self) -> None:
        if self.name not in held_by_step:
            self.open()
            held_by_step[self.name] = Held(
                WorkQueue(self.worker(), workers=self._in_flight, size=self._size, max_wait=self._max_wait, tries=tries)
            )
        self._held = held_by_step[self.name]
        self.queue = self._held.queue

    def teardown(self) -> None:
        """At the end of each bundle: nothing is closed that others use."""

    def process(self, element: tuple[int, Any], look: Any = _LOOK) -> Iterator[Any]:
        """Never raises: the runner would give the whole bundle again."""
        self.queue.give(element[1])
        yield from self._ended()
        while self.queue.full:  # the reader is held up, so that no more is acknowledged than can be worked on
            self.queue.wait(LOOK_SECONDS)
            yield from self._ended()
        look.set(time.time() + LOOK_SECONDS)

    @on_timer(_TIMER)
    def look(self, look: Any = _LOOK) -> Iterator[Any]:
        held, fault = self._held, self.queue.fault
        yield from self._ended()
        if fault and held.is_through():
            raise StreamFailed(str(fault), held.dead) from fault
        if fault or self.queue.held:
            look.set(time.time() + LOOK_SECONDS)

    def _ended(self) -> Iterator[Any]:
        held, queue = self._held, self.queue
        if queue.fault:
            reading.stop()
        for batch in queue.take():
            try:
                done = self.refuse(batch.items, str(batch.lost)) if batch.lost else batch.result
                outputs = list(self.end(done))
            except Exception as error:
                log.warning("what came of %d records could not be handed on: %s", len(batch.items), error)
                queue.put_back(batch, error)
                continue
            held.dead += len(batch.items) if batch.lost else 0
            held.quiet = None
            queue.ended(batch)
            yield from outputs


def held_items() -> list[Any]:
    """What was read from the stream and has not come to its end."""
    return [item for held in list(held_by_step.values()) for item in held.queue.items]


def begin() -> None:
    """Of a stream: nothing is left of one before it in this process."""
    for held in held_by_step.values():
        held.queue.close()
    held_by_step.clear()
    reading.install()


def drain(seconds: float) -> None:
    """Reads no more, and waits for what is held; what is left after so many seconds is given up, as dead letters."""
    reading.stop()
    if _wait_until_through(seconds):
        return
    for held in held_by_step.values():
        last = held.queue.last_failure
        why = f"the stream was ended {seconds:.0f} s ago and this was still not in the index"
        held.queue.give_up(StreamEnded(f"{why}: {last}" if last else why))
    _wait_until_through(LONGEST_READ)
    if dead := sum(held.dead for held in held_by_step.values()):
        log.warning("%d records that were read are dead letters, since they were not in the index in time", dead)


def _wait_until_through(seconds: float) -> bool:
    """First for a turn in vain: what was being read until then is held only after it."""
    deadline, first = time.monotonic() + seconds, reading.turns
    while not (reading.turns > first and all([held.is_through() for held in list(held_by_step.values())])):
        if time.monotonic() >= deadline:
            return False
        time.sleep(LOOK_SECONDS / 5)
    return True
