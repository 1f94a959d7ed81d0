"""Concurrent requests -> runs of texts of like length, one worker thread a core, a bounded queue before them."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field

import grpc
import numpy as np
from numpy.typing import NDArray

from serving.server.api.status import Failure
from serving.server.compute.run_spans import record_run
from serving.server.compute.shapes import TOKENS_PER_RUN, capacity, next_run, padded_length
from serving.server.config.files import Batching
from serving.server.metrics import Metrics
from serving.server.models.loaded import LoadedModel
from serving.tracing import spans

# The texts of one request fall due one after the other, this many seconds apart: a search of one text does not wait
# behind a bulk load of thousands that came a moment before it, and no bulk load waits for ever either.
PACE = 0.02


class Request:
    """The texts of one call, which may be encoded in several runs."""

    def __init__(self, model: LoadedModel, name: str, token_ids: list[NDArray[np.int32]]):
        self.name = name
        self.token_ids = token_ids
        self.came = time.monotonic()
        self.trace = spans.current()
        self.vectors = np.empty((len(token_ids), model.contract.dimension), np.float32)
        self.future: Future[NDArray[np.float32]] = Future()
        self._left = len(token_ids)
        self._lock = threading.Lock()

    def fill(self, row: int, vector: NDArray[np.float32]) -> None:
        self.vectors[row] = vector
        with self._lock:
            self._left -= 1
            done = self._left == 0
        if done and self.future.set_running_or_notify_cancel():
            self.future.set_result(self.vectors)

    def fail(self, failure: Failure) -> None:
        with self._lock:
            if not self.future.done() and self.future.set_running_or_notify_cancel():
                self.future.set_exception(failure)


@dataclass(order=True)
class _Waiting:
    due: float
    number: int
    request: Request = field(compare=False)
    row: int = field(compare=False)


@dataclass(frozen=True)
class _Lane:
    """Texts that may share a run: same version, same padded length; same request where batching is off."""

    model: LoadedModel
    length: int
    request: Request | None


class Batcher:
    """Takes requests, gives futures of their vectors."""

    def __init__(self, settings: Batching | None, metrics: Metrics):
        self._shared = settings is not None  # else no run holds texts of two requests
        self._settings = settings or Batching()
        self._metrics = metrics
        self._lanes: dict[_Lane, list[_Waiting]] = {}
        self._numbers = itertools.count()
        self._queued = self._queued_tokens = 0
        self._closing = False
        self._changed = threading.Condition()
        self._workers = [
            threading.Thread(target=self._work, name=f"run-{number}", daemon=True)
            for number in range(self._settings.threads)
        ]
        for worker in self._workers:
            worker.start()

    def submit(self, model: LoadedModel, name: str, token_ids: list[NDArray[np.int32]]) -> Future[NDArray[np.float32]]:
        """A future of vectors [n, d]; Failure where the queue has no room."""
        request = Request(model, name, token_ids)
        if not token_ids:
            request.future.set_result(request.vectors)
            return request.future
        lengths = [padded_length(len(ids), model.contract.max_tokens) for ids in token_ids]
        most = self._settings.max_runs_queued * TOKENS_PER_RUN
        with self._changed:
            # A request larger than the whole queue is taken when nothing else waits, or it could never be.
            if self._queued and self._queued_tokens + sum(lengths) > most:
                raise Failure(
                    grpc.StatusCode.RESOURCE_EXHAUSTED,
                    f"the queue is full: {self._queued} texts wait already; try again later",
                )
            for row, length in enumerate(lengths):
                lane = _Lane(model, length, None if self._shared else request)
                waiting = _Waiting(request.came + row * PACE, next(self._numbers), request, row)
                heapq.heappush(self._lanes.setdefault(lane, []), waiting)
            self._count(len(lengths), sum(lengths))
            self._changed.notify(len(lengths))
        return request.future

    def close(self) -> None:
        """Finishes what waits, then ends the workers."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for worker in self._workers:
            worker.join()

    def _count(self, texts: int, tokens: int) -> None:
        self._queued += texts
        self._queued_tokens += tokens
        self._metrics.queued(self._queued)

    def _work(self) -> None:
        while True:
            with self._changed:
                taken = self._take()
                while taken is None:
                    if self._closing and not self._lanes:
                        return
                    self._changed.wait(self._patience())
                    taken = self._take()
            self._run(*taken)
            del taken  # an idle worker must not keep a version in memory that is no longer served

    def _patience(self) -> float | None:
        """How long until a run that does not fill has waited enough; None where nothing waits."""
        if not self._lanes:
            return None
        first = min(waiting[0].request.came for waiting in self._lanes.values())
        return max(0.0, first + self._settings.wait_seconds - time.monotonic())

    def _ready(self, lane: _Lane) -> bool:
        """Whether a run is full or has waited enough, counted from when its first text came, not from when it is due:
        the last texts of a bulk load are due late, and nothing is gained by keeping them."""
        waiting = self._lanes[lane]
        if self._closing or len(waiting) >= capacity(lane.length, self._settings.max_texts):
            return True
        return time.monotonic() >= waiting[0].request.came + self._settings.wait_seconds

    def _take(self) -> tuple[_Lane, int, list[_Waiting]] | None:
        """The texts that are due first, with others that fit their run; None where there is nothing to do yet."""
        lane = min(filter(self._ready, self._lanes), key=lambda lane: self._lanes[lane][0], default=None)
        if lane is None:
            return None
        waiting = self._lanes[lane]
        count, size = next_run(len(waiting), capacity(lane.length, self._settings.max_texts))
        texts = [heapq.heappop(waiting) for _ in range(count)]
        if not waiting:
            del self._lanes[lane]
        self._count(-count, -count * lane.length)
        # Nobody waits for the texts of a call that was given up or has failed.
        return lane, size, [text for text in texts if not text.request.future.done()]

    def _run(self, lane: _Lane, size: int, texts: list[_Waiting]) -> None:
        if not texts:
            return
        token_ids = [text.request.token_ids[text.row] for text in texts]
        began = time.monotonic()
        try:
            padded = lane.model.padded(token_ids, size, lane.length)
            vectors = lane.model.vectors(padded)
        except Exception as error:  # the worker must outlive whatever the graph raises
            reason = ": ".join([type(error).__name__, *str(error).strip().splitlines()[:1]])
            failure = Failure(grpc.StatusCode.INTERNAL, f"encoding failed: {reason}")
            for text in texts:
                text.request.fail(failure)
            return
        ended = time.monotonic()
        self._metrics.ran(
            texts[0].request.name,
            rows=len(texts),
            capacity=capacity(lane.length, self._settings.max_texts),
            real_tokens=sum(map(len, token_ids)),
            padded_tokens=padded.size,
            seconds=ended - began,
        )
        if spans.is_on():
            record_run([text.request for text in texts], began, ended, padded.shape)
        for text, vector in zip(texts, vectors, strict=False):
            text.request.fill(text.row, vector)
