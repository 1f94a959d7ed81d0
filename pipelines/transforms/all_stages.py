"""All stages in one step, for streams on the direct runner: concurrency/direct_stream.py has the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from pipelines.concurrency.direct_stream import PolledDoFn
from pipelines.io.dead_letters import Letter
from pipelines.metrics.counters import watched
from pipelines.records import Company
from pipelines.services import Services, Session
from pipelines.transforms.batch import Done, Task, outputs
from pipelines.transforms.traced import traced
from pipelines.transforms.write import index_batch
from serving.tracing.start import start_worker


class AllStages(PolledDoFn):
    """(key, Company) -> nothing but dead letters."""

    def __init__(self, services: Services, in_flight: int, *, size: int, max_wait: float):
        super().__init__(in_flight, size=size, max_wait=max_wait)
        self._services = services

    def open(self) -> None:
        start_worker(self._services.tracing)
        self.session = Session(self._services)

    @watched
    def work(self, items: list[Company]) -> Done:
        """For as long as it takes: these messages are acknowledged already."""
        return self.session.by_live_model(partial(index_batch, self.session, items), for_ever=True)

    def worker(self) -> Callable[[list[Company]], Done]:
        return traced(self.work, type(self).__name__)

    def end(self, done: Done) -> Iterator[list[Task] | Letter]:
        return outputs(done)

    def refuse(self, items: list[Company], reason: str) -> Done:
        done = Done()
        for company in items:
            done.refuse(company, "index", reason)
        return done
