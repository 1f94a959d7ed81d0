"""A step that works on several batches at a time: while one waits for an answer, the next is on its way."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import TaggedOutput
from apache_beam.utils.windowed_value import WindowedValue


class Overlapped(beam.DoFn):
    """What comes of the batches is given in their order, and all of it before the bundle counts as done."""

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

    def teardown(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _next(self) -> Iterator[Any]:
        future, window, timestamp = self._pending.popleft()
        for output in self.end(future.result()):
            if isinstance(output, TaggedOutput):
                yield TaggedOutput(output.tag, WindowedValue(output.value, timestamp, (window,)))
            else:
                yield WindowedValue(output, timestamp, (window,))
