"""Whether the parts that a search needs are there, fit each other, and what is in the index."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from common.errors import CommandError
from index.base import Status
from index.errors import WrongModel
from search.ranking.companies import Companies
from search.ranking.encoder import Encoder
from search.routes.schemas import Readiness

READY_SECONDS = 1.0  # a look is good for so long, however many balancers and pages ask
STATUS_SECONDS = 15.0  # counting all companies is dear
FIGURES_SECONDS = 60.0  # and Prometheus asks for ever

Answer = TypeVar("Answer")


class Kept(Generic[Answer]):
    """The newest answer to a question that is dear. While one caller asks again, the others get the one before: with
    cachetools' TTLCache, which has only forgotten it by then, all of them would wait."""

    def __init__(self, ask: Callable[[], Answer], seconds: float, clock: Callable[[], float] = time.monotonic):
        self._ask, self._seconds, self._clock = ask, seconds, clock
        self._kept: tuple[Answer, float] | None = None
        self._asking = threading.Lock()

    def get(self) -> Answer:
        kept = self._kept
        if kept and self._clock() - kept[1] < self._seconds:
            return kept[0]
        if not self._asking.acquire(blocking=kept is None):
            assert kept is not None
            return kept[0]
        try:
            kept = self._kept
            if kept and self._clock() - kept[1] < self._seconds:  # another one asked while this one waited
                return kept[0]
            answer = self._ask()
            self._kept = (answer, self._clock())
            return answer
        finally:
            self._asking.release()


class Health:
    """Asks index and endpoint how they are, for /readyz and the page."""

    def __init__(self, companies: Companies, encoder: Encoder):
        self._companies, self._encoder = companies, encoder
        self._readiness = Kept(self._look, READY_SECONDS)
        self._status = Kept(companies.status, STATUS_SECONDS)
        self._figures = Kept(companies.status, FIGURES_SECONDS)

    def readiness(self) -> Readiness:
        return self._readiness.get()

    def status(self) -> Status:
        return self._status.get()

    def figures(self) -> Status | None:
        """The status as it was a minute ago at most; None where the index is away."""
        return _tried(self._figures.get)[0]

    def _look(self) -> Readiness:
        kept, index = _tried(self._companies.model)
        served, serving = _tried(lambda: self._encoder.served(kept))
        model = None
        if kept and served:
            model = "ok" if kept in served else str(WrongModel(self._companies.url, kept, served[0]))
        return Readiness(
            ready=model == "ok",
            index=index,
            serving=serving,
            model=model,
            index_model=kept,
            served_models=served or [],
        )


def _tried(ask: Callable[[], Answer]) -> tuple[Answer | None, str]:
    """The answer and `ok`, or none and why."""
    try:
        return ask(), "ok"
    except CommandError as error:
        return None, str(error)
