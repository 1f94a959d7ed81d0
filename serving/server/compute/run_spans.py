"""Spans of a run for each of the requests that have texts in it: how long they waited, and how long it computed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from serving.tracing import spans


class Traced(Protocol):
    """A request that waits for its texts to be run."""

    came: float  # of time.monotonic
    trace: object  # its context


def record_run(requests: Sequence[Traced], began: float, ended: float, shape: Sequence[int]) -> None:
    """`requests` has the request of each text; times are those of time.monotonic, spans have those of the calendar."""
    calendar = time.time() - time.monotonic()
    rows, length = shape
    texts = Counter(map(id, requests))
    for request in {id(one): one for one in requests}.values():
        came, mine = request.came + calendar, texts[id(request)]
        shared = {"rows": rows, "tokens": rows * length, "requests": len(texts)}
        batch = spans.record("batch", request.trace, came, ended + calendar, texts=mine, **shared)
        spans.record("queue", batch, came, began + calendar)
        spans.record("compute", batch, began + calendar, ended + calendar)
