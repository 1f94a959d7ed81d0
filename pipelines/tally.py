"""What became of the records: counted by Beam for the whole job, and in this process for whoever watches it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from apache_beam.metrics import Metrics, MetricsFilter
from apache_beam.runners.runner import PipelineResult

NAMESPACE = "pause"
ENDS = ("bad", "stale", "unchanged", "indexed", "deleted", "dead")  # each record has exactly one
BESIDE = ("encoded", "unknown_fields")

_counters = {name: Metrics.counter(NAMESPACE, name) for name in ("read", *ENDS, *BESIDE)}
_here: Counter[str] = Counter()
_lock = threading.Lock()


def count(name: str, number: int = 1) -> None:
    if number:
        _counters[name].inc(number)
        with _lock:
            _here[name] += number


def here() -> dict[str, int]:
    with _lock:
        return dict(_here)


@dataclass(frozen=True)
class Summary:
    counts: Mapping[str, int]

    @classmethod
    def of(cls, result: PipelineResult) -> Summary:
        found = result.metrics().query(MetricsFilter().with_namespace(NAMESPACE))["counters"]
        counts: Counter[str] = Counter()
        for metric in found:
            counts[metric.key.metric.name] += metric.result or 0
        return cls(counts)

    @property
    def adds_up(self) -> bool:
        return self.counts.get("read", 0) == sum(self.counts.get(name, 0) for name in ENDS)

    def __str__(self) -> str:
        ends = ", ".join(f"{self.counts[name]:,} {name}" for name in ENDS if self.counts.get(name)) or "nothing to do"
        encoded, ignored = (self.counts.get(name, 0) for name in BESIDE)
        beside = f"{encoded:,} encoded" if encoded else "nothing encoded"
        return f"{self.counts.get('read', 0):,} read: {ends}; {beside}" + (
            f"; {ignored:,} unknown fields ignored" if ignored else ""
        )
