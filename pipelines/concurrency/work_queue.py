"""Items in, results of batches out: threads that work beside whoever gives and takes, and lose nothing that fails.

A batch is in one of five states, which change under one lock only:

    ready -> under way -> done -> ending -> gone
               ^    |      ^         |
               |    v      +---------+  what ends it failed
              failed                    the work failed: tried again after a pause, by whichever thread is free

Until it is gone it is held. Ready, under way and failed ones each take one of `workers` places: while a service is sick
nothing piles up here, and whoever gives is to wait (`full`).
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0  # seconds, after a failure

Item = TypeVar("Item")
Result = TypeVar("Result")
Patience = Callable[[Exception], float]
log = logging.getLogger(__name__)


class State(Enum):
    """Of a batch."""

    READY = "ready"
    UNDER_WAY = "under way"
    FAILED = "failed"
    DONE = "done"
    ENDING = "ending"


PLACED = (State.READY, State.UNDER_WAY, State.FAILED)
BUSY = (State.READY, State.UNDER_WAY)


@dataclass(eq=False)
class Batch(Generic[Item, Result]):
    """Items that are worked on together."""

    items: list[Item]
    state: State = State.READY
    failures: int = 0
    again: float = 0.0  # when a failed one is tried again
    result: Result | None = None
    lost: Exception | None = None  # why there will be no result


class WorkQueue(Generic[Item, Result]):
    """`tries` says how often an error is worth trying: `math.inf` for one that passes with time. After so many the
    queue gives up: all that it holds, and all that it is given from then on, comes out as lost, with the reason."""

    def __init__(
        self,
        work: Callable[[list[Item]], Result],
        *,
        workers: int,
        size: int,
        max_wait: float,
        tries: Patience,
        pause: float = FIRST_PAUSE,
    ):
        self._work, self._tries, self._pause = work, tries, pause
        self._workers, self._size, self._max_wait = workers, size, max_wait
        self._changed = threading.Condition()
        self._waiting: list[Item] = []
        self._since = 0.0  # when the first of them came
        self._batches: list[Batch[Item, Result]] = []
        self._fault: Exception | None = None
        self._last_failure: Exception | None = None
        self._closed = False
        for number in range(workers):
            # Daemons: a service that never answers must not keep the process from its end.
            threading.Thread(target=self._run, name=f"work-queue-{number}", daemon=True).start()

    # -- for whoever gives and takes --

    def give(self, item: Item) -> None:
        """Never waits. An item on its own goes at once; while earlier ones are worked on it waits for others, until
        they fill a batch, or for `max_wait`, or until nothing is under way any more."""
        with self._changed:
            if not self._waiting:
                self._since = time.monotonic()
            self._waiting.append(item)
            self._form()
            self._changed.notify_all()

    def take(self) -> list[Batch[Item, Result]]:
        """What has come to its end, each for one taker alone, who says `ended` or `put_back` of each."""
        with self._changed:
            if self._fault:
                self._lose(self._fault)
            taken = [batch for batch in self._batches if batch.state is State.DONE]
            for batch in taken:
                batch.state = State.ENDING
            return taken

    def ended(self, batch: Batch[Item, Result]) -> None:
        with self._changed:
            self._batches.remove(batch)
            self._changed.notify_all()

    def put_back(self, batch: Batch[Item, Result], error: Exception) -> None:
        """What came of it could not be handed on: it can be taken again."""
        with self._changed:
            batch.state, batch.failures = State.DONE, batch.failures + 1
            if batch.failures >= self._tries(error):
                self._fault = self._fault or error

    @property
    def held(self) -> int:
        return len(self.items)

    @property
    def items(self) -> list[Item]:  # given and not ended
        with self._changed:
            return [*self._waiting, *(item for batch in self._batches for item in batch.items)]

    @property
    def full(self) -> bool:
        """Whether a whole batch waits for a place: who gives more now makes it grow without bound."""
        with self._changed:
            return not self._fault and len(self._waiting) >= self._size and self._count(*PLACED) >= self._workers

    @property
    def states(self) -> list[str]:
        with self._changed:
            return [batch.state.value for batch in self._batches]

    @property
    def fault(self) -> Exception | None:
        """Why it gave up."""
        with self._changed:
            return self._fault

    @property
    def last_failure(self) -> Exception | None:
        """Of the work, since something last went well."""
        with self._changed:
            return self._last_failure

    def wait(self, seconds: float) -> None:
        """Until something changed."""
        with self._changed:
            self._changed.wait(seconds)

    def give_up(self, error: Exception) -> None:
        """Now, on what is under way, too: what comes of that is not waited for any more."""
        with self._changed:
            self._fault = self._fault or error
            for batch in self._batches:
                if batch.state is State.UNDER_WAY:
                    batch.state, batch.lost = State.DONE, self._fault
            self._changed.notify_all()

    def close(self) -> None:
        """Ends the threads once they are free. What is held stays held."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    # -- in the lock --

    def _count(self, *states: State) -> int:
        return sum(batch.state in states for batch in self._batches)

    def _form(self) -> None:
        if self._fault or not self._waiting or self._count(*PLACED) >= self._workers:
            return
        due = len(self._waiting) >= self._size or time.monotonic() - self._since >= self._max_wait
        if due or not self._count(*BUSY):
            self._batches.append(Batch(self._waiting[: self._size]))
            self._waiting, self._since = self._waiting[self._size :], time.monotonic()

    def _lose(self, error: Exception) -> None:
        """All that nobody works on. What is under way may still come to a good end."""
        if self._waiting:
            self._batches.append(Batch(self._waiting))
            self._waiting = []
        for batch in self._batches:
            if batch.state in (State.READY, State.FAILED):
                batch.state, batch.lost = State.DONE, error

    def _startable(self) -> Batch[Item, Result] | None:
        self._form()
        now = time.monotonic()
        for batch in self._batches:
            if batch.state is State.READY or (batch.state is State.FAILED and batch.again <= now):
                return batch
        return None

    def _until_next(self) -> float | None:
        """Seconds until time alone changes something."""
        moments = [batch.again for batch in self._batches if batch.state is State.FAILED]
        if self._waiting and self._count(*PLACED) < self._workers:
            moments.append(self._since + self._max_wait)
        return max(0.0, min(moments) - time.monotonic()) if moments else None

    # -- in the threads --

    def _run(self) -> None:
        while (batch := self._next()) is not None:
            try:
                result = self._work(batch.items)
            except Exception as error:
                self._failed(batch, error)
            else:
                self._done(batch, result)

    def _next(self) -> Batch[Item, Result] | None:
        with self._changed:
            while not self._closed:
                batch = None if self._fault else self._startable()
                if batch:
                    batch.state = State.UNDER_WAY
                    return batch
                self._changed.wait(None if self._fault else self._until_next())
            return None

    def _done(self, batch: Batch[Item, Result], result: Result) -> None:
        with self._changed:
            self._last_failure = None
            if batch.state is State.UNDER_WAY:  # and was not given up
                batch.state, batch.result, batch.failures = State.DONE, result, 0
            self._changed.notify_all()

    def _failed(self, batch: Batch[Item, Result], error: Exception) -> None:
        with self._changed:
            if batch.state is not State.UNDER_WAY:
                return
            batch.failures, self._last_failure = batch.failures + 1, error
            batch.state = State.FAILED
            if batch.failures >= self._tries(error):
                self._fault = self._fault or error
            # The exponent is bound: after a night of failures the power would be no float any more.
            pause = min(LONGEST_PAUSE, self._pause * 2 ** min(batch.failures - 1, 16)) * random.uniform(0.5, 1.0)
            batch.again = time.monotonic() + pause
            self._changed.notify_all()
        after = "given up" if self.fault else f"kept, and tried again in {pause:.1f} s"
        log.warning("a batch of %d failed and is %s: %s", len(batch.items), after, error)
