"""Steps that work on several batches at a time: while one waits for an answer, the next is on its way."""

from __future__ import annotations

import threading
import time
import uuid
from abc import abstractmethod
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.transforms.userstate import TimerSpec, on_timer
from apache_beam.utils.windowed_value import WindowedValue

LOOK_SECONDS = 0.25  # messages that come are looks too
_TIMER = TimerSpec("look", TimeDomain.REAL_TIME)
_LOOK: Any = beam.DoFn.TimerParam(_TIMER)


class Beside(beam.DoFn):
    """A step with threads for its work."""

    def __init__(self, in_flight: int):
        self._in_flight = in_flight

    @abstractmethod
    def work(self, element: Any) -> Any:
        """In a thread, where Beam counts nothing."""

    @abstractmethod
    def end(self, done: Any) -> Iterator[Any]:
        """From what came of the work to the step's outputs, in Beam's own thread."""

    def setup(self) -> None:
        self._pool = ThreadPoolExecutor(self._in_flight, thread_name_prefix=type(self).__name__.lower())

    def teardown(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


class Overlapped(Beside):
    """What comes of the batches is given in their order, and all of it before the bundle counts as done."""

    def start_bundle(self) -> None:
        self._pending: deque[tuple[Future[Any], Any, Any]] = deque()

    def process(
        self, element: Any, window: Any = beam.DoFn.WindowParam, timestamp: Any = beam.DoFn.TimestampParam
    ) -> Iterator[Any]:
        self._pending.append((self._pool.submit(self.work, element), window, timestamp))
        while self._pending and (len(self._pending) > self._in_flight or self._pending[0][0].done()):
            yield from self._next()

    def finish_bundle(self) -> Iterator[Any]:
        while self._pending:
            yield from self._next()

    def _next(self) -> Iterator[Any]:
        future, window, timestamp = self._pending.popleft()
        for output in self.end(future.result()):
            if isinstance(output, TaggedOutput):
                yield TaggedOutput(output.tag, WindowedValue(output.value, timestamp, (window,)))
            else:
                yield WindowedValue(output, timestamp, (window,))


class Polled(Beside):
    """(key, item) -> outputs of batches of items. Bundles end at once, and a timer looks what is done: for a runner
    with one thread for all, which reads nothing while a bundle waits, and does nothing else while it reads.

    So that an item waits for others only while earlier ones are worked on, whoever ends a batch takes all that has
    come meanwhile; beside it goes what is a full batch, or has waited for `max_wait`.

    What is under way is known to this process alone, so the runner must be one that has acknowledged it already. It
    sets a step with a timer up anew for each bundle: the first one works for all of them, until the process ends.
    """

    def __init__(self, *arguments: Any, size: int, max_wait: float):
        super().__init__(*arguments)
        self._size, self._max_wait = size, max_wait
        self._name = uuid.uuid4().hex

    def setup(self) -> None:
        if self._name not in _working:
            super().setup()
            self._sending = threading.Lock()
            self._waiting: list[Any] = []
            self._since = 0.0  # when the first of them came
            self._under_way: deque[Future[Any]] = deque()
            _working[self._name] = self
        self._first = _working[self._name]

    def teardown(self) -> None:
        pass

    def process(self, element: tuple[int, Any], look: Any = _LOOK) -> Iterator[Any]:
        self._first._take(element[1])
        yield from self._first._done()
        look.set(time.time() + LOOK_SECONDS)

    @on_timer(_TIMER)
    def look(self, look: Any = _LOOK) -> Iterator[Any]:
        self._first._send()
        yield from self._first._done()
        if self._first._under_way:
            look.set(time.time() + LOOK_SECONDS)

    def _take(self, item: Any) -> None:
        with self._sending:
            if not self._waiting:
                self._since = time.monotonic()
            self._waiting.append(item)
        self._send()

    def _send(self) -> None:
        with self._sending:
            busy = sum(not one.done() for one in self._under_way)
            full = len(self._waiting) >= self._size
            waited = time.monotonic() - self._since >= self._max_wait and busy < self._in_flight
            if not self._waiting or not (full or waited or not busy):
                return
            sent = self._pool.submit(self.work, self._waiting)
            self._waiting = []
            self._under_way.append(sent)
        sent.add_done_callback(lambda _: self._send())

    def _done(self) -> Iterator[Any]:
        while self._under_way and (self._under_way[0].done() or len(self._under_way) > self._in_flight):
            yield from self.end(self._under_way.popleft().result())


_working: dict[str, Polled] = {}
