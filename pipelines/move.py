"""Companies carried from the live index into its successor, encoded by the successor's model on the way.

No Beam job: a scan of one moment is read from end to end by one reader, and the time goes into the endpoint, which a
few batches under way keep busy from here. More workers would only wait for the same two ends.
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from index.base import Index
from index.document import Document
from model.contract import Contract
from model.errors import InputError
from pipelines.company import Company
from pipelines.dead_letter import DeadLetter, Stage, of_document
from pipelines.encoding import Encoded, encode
from pipelines.stages import EMPTY
from pipelines.steps import BATCH_BYTES
from pipelines.unchanged import Task, plan
from serving.client import EmbeddingClient

SAMPLE = 50  # companies that are searched for before anybody else may


class ModelChanged(InputError):
    """Vectors of two models came from one endpoint."""


class TooManyDead(InputError):
    """More companies than allowed would be missing from the new index."""


@dataclass
class Pass:
    """What one look at all of the live index came to."""

    seen: int = 0
    companies: int = 0  # of those seen, the successor has so many now, in this version or a newer one,
    tombstones: int = 0  # and so many of these
    dead: int = 0  # refused, now or in a pass before
    written: int = 0
    sample: list[str] = field(default_factory=list)  # ids of companies, each as likely as any other

    def look_at(self, document: Document) -> None:
        self.seen += 1
        if document.deleted:
            return
        place = len(self.sample) if len(self.sample) < SAMPLE else random.randrange(self.seen)
        if place < SAMPLE:
            self.sample[place : place + 1] = [document.id]

    def keep(self, deleted: bool) -> None:
        self.tombstones += deleted
        self.companies += not deleted


class Move:
    """Memory holds the batches under way, and the ids that were refused."""

    def __init__(
        self,
        successor: Index,
        connect: Callable[[], EmbeddingClient],
        contract: Contract,
        bury: Callable[[DeadLetter], object],
        *,
        max_dead: int,
        batch_size: int,
        in_flight: int,
    ):
        self._successor, self._connect, self._contract = successor, connect, contract
        self._bury, self._max_dead = bury, max_dead
        self._batch_size, self._in_flight = batch_size, in_flight
        self.encoded = 0  # in all passes
        self._dead: dict[str, int] = {}  # the refused version of each id: a newer one may be better

    def carry(self, live: Index, advance: Callable[[int], object], since: int = 0) -> Pass:
        """All that the successor lacks or has in an older version; whatever was carried before is skipped, and so is
        what was written before `since`, in microseconds."""
        done = Pass()
        pending: deque[Future[Encoded]] = deque()
        pool = ThreadPoolExecutor(self._in_flight, thread_name_prefix="encode")
        try:
            pages = live.scan(self._batch_size, tombstones=True)
            recent = ([document for document in page if document.indexed_at >= since] for page in pages)
            tasks = self._tasks(recent, live.url, done, advance)
            for batch in self._batches(tasks):
                pending.append(pool.submit(encode, self._connect, batch))
                while pending and (len(pending) > self._in_flight or pending[0].done()):
                    advance(self._write(pending.popleft().result(), done))
            while pending:
                advance(self._write(pending.popleft().result(), done))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
        return done

    def _tasks(
        self, pages: Iterable[list[Document]], source: str, done: Pass, advance: Callable[[int], object]
    ) -> Iterator[Task]:
        for page in pages:
            known = self._successor.known(document.id for document in page)
            for document in page:
                done.look_at(document)
                # Its vector is the other model's.
                company = Company(replace(document, embedding=None, indexed_at=0), source)
                task = plan(company, known, self._contract.recipe, self._contract.fingerprint)
                if isinstance(task, Task) and task.text != "" and not self._is_dead(document):
                    yield task
                    continue
                if not isinstance(task, Task):
                    done.keep(known[document.id].deleted)
                elif self._is_dead(document):
                    done.dead += 1
                else:
                    self._refuse(task, "encode", EMPTY.format(recipe=self._contract.text_recipe), done)
                advance(1)

    def _batches(self, tasks: Iterable[Task]) -> Iterator[list[Task]]:
        """Filled across pages: after an interruption, or in a second pass, little of a page is left to do."""
        batch: list[Task] = []
        size = 0
        for task in tasks:
            batch.append(task)
            size += len(task.document.description)
            if len(batch) >= self._batch_size or size >= BATCH_BYTES:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch

    def _write(self, encoded: Encoded, done: Pass) -> int:
        """How many documents it was."""
        for task in encoded.good:
            if task.text is not None and task.document.model != self._contract.fingerprint:
                raise ModelChanged(
                    f"the endpoint now serves model {task.document.model}, and the move was to "
                    f"{self._contract.fingerprint}; it is not complete, the same command begins with the model found"
                )
        for task, reason in encoded.bad:
            self._refuse(task, "encode", reason, done)
        self.encoded += encoded.encoded
        outcomes = self._successor.write([task.document for task in encoded.good])
        for task, outcome in zip(encoded.good, outcomes, strict=True):
            if outcome.status == "failed":
                self._refuse(task, "index", outcome.reason, done)
            else:
                done.written += 1
                done.keep(task.document.deleted)
        return len(encoded.tasks)

    def _is_dead(self, document: Document) -> bool:
        return self._dead.get(document.id, -1) >= document.version

    def _refuse(self, task: Task, stage: Stage, reason: str, done: Pass) -> None:
        self._bury(of_document(task.document, stage, reason, task.source, time.time_ns() // 1000))
        self._dead[task.document.id] = task.document.version
        done.dead += 1
        if len(self._dead) > self._max_dead:
            raise TooManyDead(
                f"company {task.document.id!r} cannot be carried over: {reason}; that makes {len(self._dead):,} such "
                f"companies where --max_dead allows {self._max_dead:,}; the move is not complete"
            )
