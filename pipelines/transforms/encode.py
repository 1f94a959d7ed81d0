"""Batches to the endpoint and back: each text with its vector, or with the reason why it has none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import apache_beam as beam

from model.contract import Contract
from pipelines.metrics.counters import serving, watched
from pipelines.options import IN_FLIGHT
from pipelines.records import Company
from pipelines.services import MOVED, Services, Session
from pipelines.transforms.batch import Done, StageDoFn, Task, par_do
from pipelines.transforms.skip_unchanged import plan_batch
from serving.client import EmbeddingClient, TextsRefused


class EncodeTexts(beam.PTransform[beam.PCollection[list[Task] | list[Company]], Any]):
    """Batches of tasks, or of companies, which are looked up in the index first -> `good`: batches of tasks with
    vectors, for WriteToIndex; `dead`: dead letters."""

    def __init__(self, services: Services, in_flight: int = IN_FLIGHT):
        """`in_flight`: batches that a worker has at the endpoint at a time."""
        super().__init__()
        self._services, self._in_flight = services, in_flight

    def expand(self, batches: beam.PCollection[list[Task] | list[Company]]) -> Any:
        return par_do(Encode(self._services, self._in_flight)).expand(batches)


class Encode(StageDoFn):
    """list[Task] -> list[Task] with vectors. Where the index was moved on the way, or its model is not served for a
    while, the batch is planned anew from the companies as they arrived."""

    @watched
    def work(self, element: list[Task] | list[Company]) -> Done:
        tasks = [one for one in element if isinstance(one, Task)]
        try:
            if len(tasks) == len(element):
                return encode_batch(self.session, tasks)
        except MOVED:
            pass
        companies = [one.company if isinstance(one, Task) else one for one in element]
        return self.session.by_live_model(partial(plan_and_encode, self.session, companies))


def plan_and_encode(session: Session, companies: list[Company], contract: Contract) -> Done:
    return plan_batch(session, companies, contract).then(partial(encode_batch, session))


def encode_batch(session: Session, tasks: list[Task]) -> Done:
    encoded = encode(session.client, tasks)
    done = Done(encoded.good, Counter(encoded=encoded.encoded))
    for task, reason in encoded.bad:
        session.index.require(task.document.model)  # the next model may take it
        done.refuse(task, "encode", reason)
    return done


@dataclass(frozen=True)
class Encoded:
    """What came back for a batch of tasks; `refused` are the reasons, by id, of those without a vector."""

    tasks: list[Task]
    refused: dict[str, str]
    encoded: int

    @property
    def good(self) -> list[Task]:
        return [task for task in self.tasks if task.document.id not in self.refused]

    @property
    def bad(self) -> list[tuple[Task, str]]:
        """With a reason that names the field."""
        return [
            (task, f"description: refused by the encoder: {self.refused[task.document.id]}")
            for task in self.tasks
            if task.document.id in self.refused
        ]


def encode(connect: Callable[[], EmbeddingClient], tasks: list[Task]) -> Encoded:
    """By the model that their texts were made for; ModelNotServed where it is gone.

    The client sorts by length and cuts into requests of equal work; without a text to send nobody connects."""
    asked = [task for task in tasks if task.text is not None]
    if not asked:
        return Encoded(tasks, {}, 0)
    [planned_for] = {task.document.model for task in asked}
    refused: dict[str, str] = {}
    try:
        with serving.time():
            vectors, models = connect().embed([task.text for task in asked if task.text is not None], planned_for)
    except TextsRefused as error:
        vectors, models = error.vectors, error.fingerprints
        refused = {asked[refusal.position].document.id: refusal.reason for refusal in error.refusals}
    made = {
        task.document.id: replace(task, document=replace(task.document, model=model, embedding=vector))
        for task, vector, model in zip(asked, vectors, models, strict=True)
        if model  # the refused have none, and stay what they were planned as
    }
    return Encoded([made.get(task.document.id, task) for task in tasks], refused, len(asked) - len(refused))
