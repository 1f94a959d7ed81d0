"""Writes the lists that were shown to the store in the background, so that no request waits for it."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from contextlib import suppress

from search.feedback.store import Feedback, FeedbackDown, FeedbackFull, Shown

WAITING = 10_000  # lists
WAITING_LETTERS = 32 << 20  # in them: one list may have 60,000, and memory is everybody's
AT_ONCE = 500
GATHER = 5.0  # seconds: every write costs the store as much as some searches, and people wait for those
PAUSE = 1.0  # seconds between two tries on a store that is down

log = logging.getLogger(__name__)


class Recorder:
    """Lists that come faster than the store takes them are dropped and counted: an answer says all that it needs."""

    def __init__(self, store: Feedback, dropped: Callable[[int], None], waiting: int = WAITING):
        self._store, self._dropped = store, dropped
        self._waiting: queue.Queue[Shown | None] = queue.Queue(waiting)
        self._letters, self._counting = 0, threading.Lock()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._told = False

    def shown(self, record: Shown) -> None:
        letters = _letters(record)
        if not self._reserved(letters):
            self._dropped(1)
            return
        try:
            self._waiting.put_nowait(record)
        except queue.Full:
            self._release(letters)
            self._dropped(1)

    def start(self) -> None:
        self._stopping.clear()
        self._thread = threading.Thread(target=self._write, name="shown-lists", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """When all that waits is written, if the store takes it."""
        self._stopping.set()
        with suppress(queue.Full):
            self._waiting.put_nowait(None)  # wakes a thread that has nothing to do
        if self._thread:
            self._thread.join()
            self._thread = None

    def _write(self) -> None:
        self._told = False
        while not (self._stopping.is_set() and self._waiting.empty()):
            batch = self._batch()
            while batch and not self._settled(batch):
                if self._stopping.wait(PAUSE):  # no time left to wait for it
                    self._dropped(len(batch))
                    break

    def _settled(self, batch: list[Shown]) -> bool:
        """Written, or given up; False where it is worth another try."""
        try:
            self._store.add(batch)
            self._told = False
            return True
        except FeedbackDown as error:
            full = isinstance(error, FeedbackFull)
            if not self._told:
                what = "are not kept" if full else "wait to be written"
                log.warning("lists that were shown %s: %s", what, error)
            self._told = True
            if full:
                self._dropped(len(batch))
            return full

    def _reserved(self, letters: int) -> bool:
        with self._counting:
            fits = self._letters + letters <= WAITING_LETTERS
            self._letters += letters if fits else 0
            return fits

    def _release(self, letters: int) -> None:
        with self._counting:
            self._letters -= letters

    def _batch(self) -> list[Shown]:
        """The next, waited for, and what gathers behind it."""
        records = [self._waiting.get()]
        self._stopping.wait(GATHER)
        while len(records) < AT_ONCE:
            try:
                records.append(self._waiting.get_nowait())
            except queue.Empty:
                break
        batch = [record for record in records if record is not None]
        self._release(sum(map(_letters, batch)))
        return batch


def _letters(record: Shown) -> int:
    """Of what a caller chooses the size of."""
    return len(record.text or "") + sum(map(len, record.companies)) + sum(map(len, record.like + record.unlike))
