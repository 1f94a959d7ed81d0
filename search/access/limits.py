"""How much one caller may ask: a token bucket of requests, and the size and pace of a body."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable

from cachetools import LRUCache
from starlette.types import Message, Receive

CALLERS = 10_000  # whose buckets are kept; one that falls out was long full again
READ_ON = 8 << 20  # bytes of a body too large that are read and dropped: who is still sending hears no answer


class TokenBuckets:
    """A token bucket for each name: `rate` requests a second, and up to `burst` at once; a rate of 0 is no limit.

    Not by the package limits: it counts in windows, where a bucket lets a burst through and then an even stream, and
    takes 3 to 8 us a request instead of 1.6."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic):
        self._rate, self._burst, self._clock = rate, burst, clock
        self._kept = LRUCache(CALLERS)  # name -> requests left, as of when
        self._lock = threading.Lock()

    def take(self, name: str) -> int:
        """0, or after how many whole seconds there is one more."""
        if not self._rate:
            return 0
        with self._lock:
            now = self._clock()
            left, since = self._kept.get(name, (float(self._burst), now))
            left = min(self._burst, left + (now - since) * self._rate)
            granted = left >= 1
            self._kept[name] = (left - 1 if granted else left, now)
        return 0 if granted else math.ceil((1 - left) / self._rate)


class TooSlow(Exception):
    """A body that takes its time to arrive."""


async def read_body(receive: Receive, limit: int, seconds: float) -> bytes | None:
    """All of it, or None where it is larger; TooSlow unless it is there in time."""
    try:
        async with asyncio.timeout(seconds):
            return await _read(receive, limit)
    except TimeoutError as error:
        raise TooSlow from error


async def _read(receive: Receive, limit: int) -> bytes | None:
    parts, size = list[bytes](), 0
    while size <= READ_ON:
        message = await receive()
        if message["type"] != "http.request":  # the caller went away
            break
        size += len(message.get("body", b""))
        if size <= limit:
            parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            break
    return b"".join(parts) if size <= limit else None


def replayed(body: bytes, receive: Receive) -> Receive:
    """The same body once more, for whoever is next; then what comes after it."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return pending.pop() if pending else await receive()

    return again
