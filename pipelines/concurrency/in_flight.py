"""Several batches in flight at a time: while one waits for an answer, the next is on its way."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from typing import Any, Generic, TypeVar

import apache_beam as beam
from apache_beam.pvalue import TaggedOutput
from apache_beam.utils.windowed_value import WindowedValue

Result = TypeVar("Result")


class InFlight(Generic[Result]):
    """Work in threads beside the caller's own. It comes back in the order in which it was submitted."""

    def __init__(self, most: int, name: str):
        """`most`: batches in flight, for `due`."""
        self._most = most
        self._pool = ThreadPoolExecutor(most, thread_name_prefix=name)
        self._pending: deque[tuple[Future[Result], Any]] = deque()

    def __len__(self) -> int:
        """Batches submitted and not taken back."""
        return len(self._pending)

    def submit(self, work: Callable[[Any], Result], batch: Any, tag: Any = None) -> None:
        """`tag` comes back with it."""
        self._pending.append((self._pool.submit(work, batch), tag))

    def due(self) -> Iterator[tuple[Future[Result], Any]]:
        """The first ones, as far as they are done or too many are in flight: whoever asks for their results waits."""
        while self._pending and (len(self._pending) > self._most or self._pending[0][0].done()):
            yield self._pending.popleft()

    def rest(self) -> Iterator[tuple[Future[Result], Any]]:
        while self._pending:
            yield self._pending.popleft()

    def abandon(self) -> None:
        """Returns when nothing is in flight any more; what had not begun never does."""
        futures = [future for future, _ in self._pending]
        self._pending.clear()
        wait_for([future for future in futures if not future.cancel()])

    def close(self) -> None:
        """Waits for nothing."""
        self._pool.shutdown(wait=False, cancel_futures=True)


class ConcurrentDoFn(beam.DoFn):
    """Works on several batches of a bundle at a time. All that comes of them is given before the bundle counts as done.
    Where one fails, the bundle fails, once nothing of it is in flight any more: the runner gives all of it again."""

    def __init__(self, in_flight: int):
        self._most = in_flight

    @abstractmethod
    def work(self, element: Any) -> Any:
        """In a thread, where Beam counts nothing."""

    @abstractmethod
    def end(self, done: Any) -> Iterator[Any]:
        """From what came of the work to the step's outputs, in Beam's own thread."""

    def worker(self) -> Callable[[Any], Any]:
        """What does the work: asked for once, when the step is set up."""
        return self.work

    def setup(self) -> None:
        self._worker = self.worker()
        self._in_flight: InFlight[Any] = InFlight(self._most, type(self).__name__.lower())

    def teardown(self) -> None:
        self._in_flight.abandon()
        self._in_flight.close()

    @property
    def pending(self) -> int:
        """Batches given and not ended."""
        return len(self._in_flight)

    def start_bundle(self) -> None:
        # What is left of a bundle that another step failed must not run beside this one, where the same records come
        # again.
        self._in_flight.abandon()

    def process(
        self, element: Any, window: Any = beam.DoFn.WindowParam, timestamp: Any = beam.DoFn.TimestampParam
    ) -> Iterator[Any]:
        self._in_flight.submit(self._worker, element, (window, timestamp))
        yield from self._outputs(self._in_flight.due())

    def finish_bundle(self) -> Iterator[Any]:
        yield from self._outputs(self._in_flight.rest())

    def _outputs(self, ended: Iterator[tuple[Future[Any], Any]]) -> Iterator[Any]:
        for future, (window, timestamp) in ended:
            try:
                outputs = list(self.end(future.result()))
            except BaseException:
                self._in_flight.abandon()
                raise
            for output in outputs:
                if isinstance(output, TaggedOutput):
                    yield TaggedOutput(output.tag, WindowedValue(output.value, timestamp, (window,)))
                else:
                    yield WindowedValue(output, timestamp, (window,))
