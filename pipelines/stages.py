"""What is done to a batch of companies on its way into the index; Beam's part of it is in pipelines/steps.py."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

from index.base import Index
from pipelines.company import Company
from pipelines.dead_letter import DeadLetter, Stage, of_document
from pipelines.encoding import encode
from pipelines.services import Connection, Services
from pipelines.unchanged import Task, newest, plan, text_of

EMPTY = "description: the model's text recipe {recipe!r} makes an empty text of this company"


@dataclass
class Done:
    """What a stage made of a batch: tasks for the next one, and those that have come to their end, counted."""

    tasks: list[Task] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    dead: list[DeadLetter] = field(default_factory=list)

    def bury(self, task: Task, stage: Stage, reason: str) -> None:
        self.counts["dead"] += 1
        self.dead.append(of_document(task.document, stage, reason, task.source, time.time_ns() // 1000))

    def then(self, stage: Callable[[list[Task]], Done]) -> Done:
        if not self.tasks:
            return self
        after = stage(self.tasks)
        return Done(after.tasks, self.counts + after.counts, self.dead + after.dead)


class Stages:
    """For all threads. Index and endpoint are opened by the first batch that needs them."""

    def __init__(self, services: Services):
        self._services = services
        self._connect = Connection(services)

    @cached_property
    def _index(self) -> Index:
        return self._services.index()

    def close(self) -> None:
        self._connect.close()

    def skip_unchanged(self, companies: list[Company]) -> Done:
        contract = self._services.contract
        latest = newest(companies)
        done = Done(counts=Counter(stale=len(companies) - len(latest)))
        known = self._index.known(company.document.id for company in latest)
        for company in latest:
            task = plan(company, known, contract.recipe, contract.fingerprint)
            if isinstance(task, str):
                done.counts[task] += 1
            elif task.text == "":
                done.bury(task, "encode", EMPTY.format(recipe=contract.text_recipe))
            else:
                done.tasks.append(task)
        return done

    def encode(self, tasks: list[Task]) -> Done:
        encoded = encode(self._connect, tasks)
        done = Done(encoded.good, Counter(encoded=encoded.encoded))
        for task, reason in encoded.bad:
            done.bury(task, "encode", reason)
        return done

    def write(self, tasks: list[Task]) -> Done:
        """The end of all of them but the dead is in the index."""
        written = self._write(tasks)
        return written.then(self._anew).then(self._write)

    def all(self, companies: list[Company]) -> Done:
        return self.skip_unchanged(companies).then(self.encode).then(self.write)

    def _write(self, tasks: list[Task]) -> Done:
        """Its tasks are those that were to keep a stored vector which was another's by then: somebody wrote between."""
        done = Done()
        outcomes = self._index.write([task.document for task in tasks])
        for task, outcome in zip(tasks, outcomes, strict=True):
            if outcome.status != "failed":
                done.counts["unchanged" if task.moves_on and outcome.status == "indexed" else outcome.status] += 1
            elif task.document.embedding is None and not task.document.deleted:
                done.tasks.append(task)
            else:
                done.bury(task, "index", outcome.reason)
        return done

    def _anew(self, tasks: list[Task]) -> Done:
        recipe = self._services.contract.recipe
        return self.encode([replace(task, text=text_of(task.document, recipe), moves_on=False) for task in tasks])
