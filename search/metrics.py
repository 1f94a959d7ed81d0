"""The service in figures, as a Prometheus page."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST as CONTENT_TYPE

__all__ = ["CONTENT_TYPE", "Metrics"]

_SECONDS = [0.001 * 2**power for power in range(15)]  # 1 ms to 16 s


class Metrics:
    """Takes note from any thread."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each, which nobody asks for
        self._registry = registry = CollectorRegistry()
        self._requests = Histogram(
            "pause_search_seconds",
            "From a request's arrival to its answer, by route and status.",
            ["route", "status"],
            registry=registry,
            buckets=_SECONDS,
        )
        self._answers = Counter("pause_search_answers", "Answers given by people.", ["answer"], registry=registry)
        self._dropped = Counter("pause_search_shown_dropped", "Shown lists that were not kept.", registry=registry)
        self._unexplained = Counter(
            "pause_search_unexplained", "Lists without the why that was asked for.", registry=registry
        )

    def requested(self, route: str, status: int, seconds: float) -> None:
        """`route` is a pattern: made-up addresses must not make the page grow."""
        self._requests.labels(route, str(status)).observe(seconds)

    def answered(self, answer: str) -> None:
        self._answers.labels(answer).inc()

    def dropped(self, lists: int) -> None:
        self._dropped.inc(lists)

    def unexplained(self) -> None:
        self._unexplained.inc()

    def exposition(self) -> bytes:
        return generate_latest(self._registry)
