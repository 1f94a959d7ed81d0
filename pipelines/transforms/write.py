"""Batches into the index: what comes out is in there, or a dead letter."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import Any

import apache_beam as beam

from model.contract import Contract
from pipelines.metrics.counters import watched, write
from pipelines.options import WRITES
from pipelines.records import Company
from pipelines.services import MOVED, Services, Session
from pipelines.transforms.batch import Done, StageDoFn, Task, par_do
from pipelines.transforms.encode import encode_batch, plan_and_encode
from pipelines.transforms.skip_unchanged import text_of


class WriteToIndex(beam.PTransform[beam.PCollection[list[Task]], Any]):
    """Batches of tasks with vectors, as EncodeTexts makes them -> `dead`, dead letters; nothing is `good`."""

    def __init__(self, services: Services, in_flight: int = WRITES):
        """`in_flight`: batches that a worker has at the index at a time."""
        super().__init__()
        self._services, self._in_flight = services, in_flight

    def expand(self, batches: beam.PCollection[list[Task]]) -> Any:
        return par_do(Write(self._services, self._in_flight)).expand(batches)


class Write(StageDoFn):
    """list[Task] -> nothing but dead letters: the end of all others is in the index."""

    @watched
    def work(self, element: list[Task]) -> Done:
        try:
            return write_batch(self.session, element)
        except MOVED:
            companies = [task.company for task in element]
            return self.session.by_live_model(partial(index_batch, self.session, companies))


def index_batch(session: Session, companies: list[Company], contract: Contract) -> Done:
    """All three stages, by one contract."""
    return plan_and_encode(session, companies, contract).then(partial(write_batch, session))


def write_batch(session: Session, tasks: list[Task]) -> Done:
    again = partial(_encode_again, session)
    return _write(session, tasks).then(again).then(partial(_write, session))


def _write(session: Session, tasks: list[Task]) -> Done:
    """Its tasks are those that were to keep a stored vector which was another's by then: somebody wrote between."""
    done = Done()
    with write.time():
        outcomes = session.index.write([task.document for task in tasks], force=session.services.force)
    now = time.time()
    for task, outcome in zip(tasks, outcomes, strict=True):
        if outcome.status != "failed":
            done.counts["unchanged" if task.moves_on and outcome.status == "indexed" else outcome.status] += 1
            if task.arrived is not None and outcome.status in ("indexed", "deleted"):
                done.ages.append(now - task.arrived / 1e6)
        elif task.document.embedding is None and not task.document.deleted:
            done.tasks.append(task)
        else:
            done.refuse(task, "index", outcome.reason)
    return done


def _encode_again(session: Session, tasks: list[Task]) -> Done:
    recipe = session.contract(tasks[0].document.model).recipe
    texts = [replace(task, text=text_of(task.document, recipe), moves_on=False) for task in tasks]
    return encode_batch(session, texts)
