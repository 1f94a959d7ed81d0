"""Companies carried from the live index into another of its address, encoded by that one's model on the way.

No Beam job: a scan of one moment is read from end to end by one reader, and the time goes into the endpoint, which a
few batches under way keep busy from here. More workers would only wait for the same two ends.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from common.errors import InputError
from index.base import Index, Known
from index.document import Document, Order, text_hash
from index.merge_versions import keeps_vector
from model.contract import Contract
from pipelines.concurrency.in_flight import InFlight
from pipelines.io.dead_letters import DeadLetter, of_document
from pipelines.records import Stage
from pipelines.transforms.batch import Task, batches
from pipelines.transforms.encode import Encoded, encode
from pipelines.transforms.skip_unchanged import EMPTY, text_of
from serving.client import EmbeddingClient
from serving.endpoint.channel import ModelNotServed

SAMPLE = 50  # companies that are searched for before anybody else may


class ModelChanged(InputError):
    """The model that the move is to is no longer served."""


class ModelNeeded(InputError):
    """There is a text to encode, and nobody at hand to encode it."""


class Superseded(InputError):
    """Another move went on with this one's work."""


class TooManyDead(InputError):
    """More companies than allowed would be missing from the new index."""


@dataclass
class Pass:
    """What one look at the live index came to."""

    seen: int = 0
    written: int = 0
    sample: list[str] = field(default_factory=list)  # ids of companies, each as likely as any other

    def look_at(self, document: Document) -> None:
        self.seen += 1
        if document.deleted:
            return
        place = len(self.sample) if len(self.sample) < SAMPLE else random.randrange(self.seen)
        if place < SAMPLE:
            self.sample[place : place + 1] = [document.id]


@dataclass(frozen=True)
class Missing:
    """What the target lacks for good, against the live index: refused by the endpoint or by the target itself."""

    companies: int
    tombstones: int
    ids: int  # that are there in an older version, or not at all


class Move:
    """Memory holds the batches under way, and the ids that were refused. Without a contract only that is carried which
    takes no encoding; ModelNeeded is raised for all else."""

    def __init__(
        self,
        live: Index,
        target: Index,
        connect: Callable[[], EmbeddingClient],
        contract: Contract | None,
        keep: Callable[[DeadLetter], object],
        holds: Callable[[], bool],
        *,
        max_dead: int,
        batch_size: int,
        in_flight: int,
    ):
        self.live, self.target = live, target
        self._connect, self._contract, self._model = connect, contract, target.spec().model
        self._keep, self._holds, self._max_dead = keep, holds, max_dead
        self.batch_size, self._in_flight = batch_size, in_flight
        self.encoded = self.written = 0  # in all passes
        self._dead: dict[str, Order] = {}  # the refused state of each id: a later one may be better

    def carry(self, advance: Callable[[int], object], since: int | None = None, swapped: bool = False) -> Pass:
        """All that the target lacks or has in an older state; of what was written since a mark, where there is one.
        Once swapped, others write to the target."""
        done = Pass()
        in_flight: InFlight[Encoded] = InFlight(self._in_flight, "encode")
        try:
            pages = self.live.scan(self.batch_size, tombstones=True, since=since)
            # Batches fill across pages: after an interruption, or in a second pass, little of a page is left to do.
            for batch in batches(self._tasks(pages, done, advance, swapped), self.batch_size):
                in_flight.submit(self._encode, batch)
                for encoded, _ in in_flight.due():
                    advance(self._write(encoded.result(), done))
            for encoded, _ in in_flight.rest():
                advance(self._write(encoded.result(), done))
        finally:
            in_flight.close()
        self.written += done.written
        return done

    def prune(self) -> int:
        """Removes from the target what the live index has not: deleted and purged since it was carried. Whatever is
        written to the live index meanwhile is carried by a later pass."""
        removed = 0
        for page in self.target.scan_known(self.batch_size):
            there = self.live.known(page)
            removed += self._remove({id: known for id, known in page.items() if id not in there})
        return removed

    def missing(self) -> Missing:
        there, here = self.live.known(self._dead), self.target.known(self._dead)
        behind = sum(id not in here or here[id].order < known.order for id, known in there.items())
        companies = sum(not one.deleted for one in there.values()) - sum(not one.deleted for one in here.values())
        return Missing(companies, len(there) - len(here) - companies, behind)

    def _tasks(
        self, pages: Iterable[list[Document]], done: Pass, advance: Callable[[int], object], swapped: bool
    ) -> Iterator[Task]:
        for page in pages:
            known = self.target.known(document.id for document in page)
            if not swapped:
                self._forget_later(page, known)
            for document in page:
                done.look_at(document)
                stored = known.get(document.id)
                if (stored is None or stored.order < document.order) and not self._is_dead(document):
                    task = self._task(document, stored)
                    if task.text != "":
                        yield task
                        continue
                    assert self._contract is not None
                    self._refuse(task, "encode", EMPTY.format(recipe=self._contract.text_recipe))
                advance(1)

    def _forget_later(self, page: list[Document], known: dict[str, Known]) -> None:
        """A later state than the live index's own was purged there, and what was carried of it must not stay: an older
        one came in since."""
        later = [one.id for one in page if one.id in known and known[one.id].order > one.order]
        now = self.live.known(later) if later else {}
        purged = {id: known[id] for id in later if id not in now or now[id].order < known[id].order}
        self._remove(purged)
        for id in purged:
            del known[id]

    def _remove(self, known: dict[str, Known]) -> int:
        """Only from an index that nobody else writes to."""
        if known and not self._holds():
            raise Superseded(f"another move of {self.live.url} went on with this one, which was silent for too long")
        return self.target.remove(known)

    def _task(self, document: Document, stored: Known | None) -> Task:
        """What has to be done for a document of the live index; its vector is the other model's."""
        bare = replace(document, embedding=None, indexed_at=0)
        if bare.deleted:
            return Task(bare, self.live.url)
        if self._contract is None:
            if stored is None or stored.deleted or stored.fields_hash != bare.fields_hash:
                raise ModelNeeded(bare.id)
            return Task(replace(bare, model=self._model, text_hash=stored.text_hash), self.live.url)
        text = text_of(bare, self._contract.recipe)
        bare = replace(bare, model=self._model, text_hash=text_hash(text))
        return Task(bare, self.live.url, None if keeps_vector(bare, stored) else text)

    def _encode(self, batch: list[Task]) -> Encoded:
        """By the model that the move is to, newest or not."""
        try:
            return encode(self._connect, batch)
        except ModelNotServed as error:
            raise ModelChanged(
                f"the move is not complete, its model is gone; the same command begins with the model found ({error})"
            ) from error

    def _write(self, encoded: Encoded, done: Pass) -> int:
        """How many documents it was."""
        for task, reason in encoded.bad:
            self._refuse(task, "encode", reason)
        self.encoded += encoded.encoded
        outcomes = self.target.write([task.document for task in encoded.good])
        for task, outcome in zip(encoded.good, outcomes, strict=True):
            if outcome.status == "failed":
                self._refuse(task, "index", outcome.reason)
            else:
                done.written += 1
        return len(encoded.tasks)

    def _is_dead(self, document: Document) -> bool:
        refused = self._dead.get(document.id)
        return refused is not None and refused >= document.order

    def _refuse(self, task: Task, stage: Stage, reason: str) -> None:
        self._keep(of_document(task.document, stage, reason, task.source, time.time_ns() // 1000))
        self._dead[task.document.id] = task.document.order
        if len(self._dead) > self._max_dead:
            raise TooManyDead(
                f"company {task.document.id!r} cannot be carried over: {reason}; that makes {len(self._dead):,} such "
                f"companies where --max_dead allows {self._max_dead:,}; the move is not complete"
            )
