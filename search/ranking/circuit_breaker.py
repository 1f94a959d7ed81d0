"""A circuit breaker: a service that is down does not hold every thread until its deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")
PAUSE = 1.0  # seconds


class CircuitBreaker:
    """After a failure all callers are told at once what it was; one in `pause` seconds is let through to try again."""

    def __init__(
        self, down: tuple[type[Exception], ...], pause: float = PAUSE, clock: Callable[[], float] = time.monotonic
    ):
        """`down` are the failures that say so; their arguments must be those of their constructor."""
        self._down, self._pause, self._clock = down, pause, clock
        self._failure: Exception | None = None
        self._until = 0.0
        self._lock = threading.Lock()

    def call(self, work: Callable[[], Result]) -> Result:
        with self._lock:
            if self._failure is not None:
                if self._clock() < self._until:
                    # A new one: a raised exception gathers the tracebacks of all threads that raise it.
                    raise type(self._failure)(*self._failure.args)
                self._until = self._clock() + self._pause  # this caller tries; the others are told meanwhile
        try:
            result = work()
        except self._down as error:
            with self._lock:
                self._failure, self._until = error, self._clock() + self._pause
            raise
        with self._lock:
            self._failure = None
        return result
