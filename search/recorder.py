"""Takes note of every list that is shown without making anybody wait for it."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

from search.feedback import Feedback, FeedbackDown, Shown

WAITING = 10_000  # lists
AT_ONCE = 500
GATHER = 5.0  # seconds: every write costs the store as much as some searches, and people wait for those
PAUSE = 1.0  # seconds between two tries on a store that is down

log = logging.getLogger(__name__)


class Recorder:
    """Lists that come faster than the store takes them are dropped and counted: an answer says all that it needs."""

    def __init__(self, store: Feedback, dropped: Callable[[int], None], waiting: int = WAITING):
        self._store, self._dropped = store, dropped
        self._waiting: queue.Queue[Shown | None] = queue.Queue(waiting)
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def shown(self, record: Shown) -> None:
        try:
            self._waiting.put_nowait(record)
        except queue.Full:
            self._dropped(1)

    def start(self) -> None:
        self._stopping.clear()
        self._thread = threading.Thread(target=self._write, name="shown-lists", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """When all that waits is written, if the store takes it."""
        self._stopping.set()
        try:
            self._waiting.put_nowait(None)  # wakes a thread that has nothing to do
        except queue.Full:
            pass
        if self._thread:
            self._thread.join()
            self._thread = None

    def _write(self) -> None:
        told = False
        while not (self._stopping.is_set() and self._waiting.empty()):
            batch = self._batch()
            while batch:
                try:
                    self._store.add(batch)
                    batch, told = [], False
                except FeedbackDown as error:
                    if not told:
                        log.warning("lists that were shown wait to be written: %s", error)
                    told = True
                    if self._stopping.wait(PAUSE):  # no time left to wait for it
                        self._dropped(len(batch))
                        batch = []

    def _batch(self) -> list[Shown]:
        """The next, waited for, and what gathers behind it."""
        records = [self._waiting.get()]
        self._stopping.wait(GATHER)
        while len(records) < AT_ONCE:
            try:
                records.append(self._waiting.get_nowait())
            except queue.Empty:
                break
        return [record for record in records if record is not None]
