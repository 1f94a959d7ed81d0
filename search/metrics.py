"""Prometheus metrics of the search service."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST as CONTENT_TYPE
from prometheus_client.registry import Collector

from search.feedback.store import NOT_SIMILAR, SIMILAR, UNDO
from search.health import Health

__all__ = ["CONTENT_TYPE", "Metrics"]

_SECONDS = [0.001 * 2**power for power in range(15)]  # 1 ms to 16 s


class Metrics:
    """Takes note from any thread."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each, which nobody asks for
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._requests = Histogram(
            "pause_search_seconds",
            "From a request's arrival to its answer, by route and status.",
            ["route", "status"],
            registry=registry,
            buckets=_SECONDS,
        )
        self._index = Histogram(
            "pause_search_index_seconds",
            "Seconds that the index took, by what was asked of it.",
            ["operation"],
            registry=registry,
            buckets=_SECONDS,
        )
        self._encoding = Histogram(
            "pause_search_encoding_seconds",
            "Seconds that the endpoint took for the texts of one question.",
            registry=registry,
            buckets=_SECONDS,
        )
        self._answers = Counter("pause_search_answers", "Answers given by people.", ["answer"], registry=registry)
        for answer in (SIMILAR, NOT_SIMILAR, UNDO):  # there at 0: the first of each is an increase, too
            self._answers.labels(answer)
        self._dropped = Counter("pause_search_shown_dropped", "Shown lists that were not kept.", registry=registry)
        self._unexplained = Counter(
            "pause_search_unexplained", "Lists without the why that was asked for.", registry=registry
        )

    def watch(self, kind: str, health: Health) -> None:
        """Tell also of the index, which is of this kind, and of the parts, as they are when somebody asks."""
        self._registry.register(_Parts(kind, health))

    def requested(self, route: str, status: int, seconds: float) -> None:
        """`route` is a pattern: made-up addresses must not make the page grow."""
        self._requests.labels(route, str(status)).observe(seconds)

    def index_took(self, operation: str, seconds: float) -> None:
        self._index.labels(operation).observe(seconds)

    def encoding_took(self, seconds: float) -> None:
        self._encoding.observe(seconds)

    def answered(self, answer: str) -> None:
        self._answers.labels(answer).inc()

    def dropped(self, lists: int) -> None:
        self._dropped.inc(lists)

    def unexplained(self) -> None:
        self._unexplained.inc()

    def exposition(self) -> bytes:
        return generate_latest(self._registry)


class _Parts(Collector):
    def __init__(self, kind: str, health: Health):
        self._kind, self._health = kind, health

    def collect(self) -> Iterator[Metric]:
        ready = self._health.readiness()
        up = GaugeMetricFamily("pause_search_part_up", "1 for a part that is well, else 0.", labels=["part"])
        for part, state in (("index", ready.index), ("serving", ready.serving), ("model", ready.model)):
            up.add_metric([part], state == "ok")
        yield up
        status = self._health.figures()
        if status is None:
            return
        model = {"kind": self._kind, "model": status.model}
        yield InfoMetricFamily("pause_search_index", "The index and its model.", model)
        gauges = {
            "companies": ("Companies that can be found.", status.live),
            "tombstones": ("Deleted ones that are remembered.", status.tombstones),
            "bytes": ("What the index takes on its disk.", status.bytes),
            "newest_record_timestamp_seconds": ("The greatest version of a record.", _seconds(status.newest_version)),
            "newest_write_timestamp_seconds": ("When something was last written.", _seconds(status.newest_write)),
        }
        for name, (about, value) in gauges.items():
            if value is not None:
                yield GaugeMetricFamily(f"pause_search_index_{name}", about, value)


def _seconds(microseconds: int | None) -> float | None:
    return None if microseconds is None else microseconds / 1e6
