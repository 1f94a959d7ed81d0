"""The counts of a run: their sum at its end, for people, and how far it is before."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TextIO

from apache_beam.metrics import MetricsFilter
from apache_beam.runners.runner import PipelineResult

from pipelines.metrics.counters import COLUMNS, NAMESPACE, OTHERS, REASONS, UNKNOWN, counted, here
from pipelines.records import Columns

ENDS = ("bad", "stale", "unchanged", "indexed", "deleted", "dead")  # each record has exactly one
BAD = ("bad", "dead")
BESIDE = ("encoded", "unknown_fields")
SHOWN_REASONS, SHOWN_NAMES = 3, 5
EVERY, EVERY_IN_A_LOG = 0.5, 10.0  # seconds between lines that say how far a run is


@dataclass(frozen=True)
class Summary:
    """How many records came to which end, and why."""

    counts: Mapping[str, int]
    reasons: Mapping[str, int] = field(default_factory=dict)  # why records were bad or dead: the field and the kind
    unknown: Mapping[str, int] = field(default_factory=dict)  # names that nobody reads
    columns: Mapping[str, int] = field(default_factory=dict)  # names of --columns that records have

    @classmethod
    def of(cls, result: PipelineResult) -> Summary:
        metrics = result.metrics()

        def by_beam(namespace: str) -> Counter[str]:
            counts: Counter[str] = Counter()
            for metric in metrics.query(MetricsFilter().with_namespace(namespace))["counters"]:
                counts[metric.key.metric.name] += metric.result or 0
            return counts

        return cls(*(by_beam(namespace) for namespace in (NAMESPACE, REASONS, UNKNOWN, COLUMNS)))

    @classmethod
    def of_process(cls) -> Summary:
        return cls(*counted(NAMESPACE, REASONS, UNKNOWN, COLUMNS))

    @property
    def adds_up(self) -> bool:
        return self.counts.get("read", 0) == sum(self.counts.get(name, 0) for name in ENDS)

    @property
    def read(self) -> int:
        return self.counts.get("read", 0)

    @property
    def bad(self) -> int:
        """At whatever stage."""
        return sum(self.counts.get(name, 0) for name in BAD)

    def __str__(self) -> str:
        ends = ", ".join(f"{self.counts[name]:,} {name}" for name in ENDS if self.counts.get(name)) or "nothing to do"
        encoded, ignored = (self.counts.get(name, 0) for name in BESIDE)
        beside = f"{encoded:,} encoded" if encoded else "nothing encoded"
        return f"{self.read:,} read: {ends}; {beside}" + (f"; {ignored:,} unknown fields ignored" if ignored else "")

    def details(self, columns: Columns) -> list[str]:
        """Lines, where there is something to tell."""
        absent = [name for name in columns.names.values() if not self.columns.get(name)] if self.read > self.bad else []
        lines = {
            "most frequent reasons": _most(self.reasons, SHOWN_REASONS),
            "unknown fields": _most(self.unknown, SHOWN_NAMES),
            "names of --columns that no record has": ", ".join(absent),
        }
        return [f"{title}: {text}" for title, text in lines.items() if text]


def _most(counts: Mapping[str, int], number: int) -> str:
    most = sorted(counts.items(), key=lambda item: (item[0] == OTHERS, -item[1], item[0]))
    told = ", ".join(f"{name} ({times:,})" for name, times in most[:number])
    return f"{told}, ..." if len(most) > number else told


def progress_line(before: dict[str, int], now: dict[str, int], seconds: float) -> str:
    done = {name: number - before.get(name, 0) for name, number in now.items()}
    words = [
        f"{done[name]:,} {name}"
        for name in ("read", "encoded", "indexed", "unchanged", "bad", "dead")
        if done.get(name)
    ]
    return f"{', '.join(words) or 'nothing read yet'}, {done.get('read', 0) / max(seconds, 1e-9):,.0f}/s"


@contextmanager
def progress(stream: TextIO | None = None) -> Iterator[None]:
    """One line on a terminal, renewed; in a log a line now and then."""
    stream = stream or sys.stderr
    terminal = stream.isatty()
    ended, before, began = threading.Event(), here(), time.monotonic()

    def show() -> None:
        while not ended.wait(EVERY if terminal else EVERY_IN_A_LOG):
            text = progress_line(before, here(), time.monotonic() - began)
            stream.write(f"\r\x1b[K{text}" if terminal else f"{text}\n")
            stream.flush()
        if terminal:
            stream.write("\r\x1b[K")

    thread = threading.Thread(target=show, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
