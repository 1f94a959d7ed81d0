"""What became of the records: counted by Beam for the whole job, and in this process for whoever watches it.

Beside the counts stands what only a process can tell of itself: how old its records are, what it waits for. All of it
is noted here, since every file more is one more on a record's way; exposition.py shows it to Prometheus.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, wraps
from typing import Any, Protocol, TypeVar

from apache_beam.metrics import Metrics
from prometheus_client import CollectorRegistry, Histogram, disable_created_metrics
from prometheus_client import Counter as Count

from pipelines.records import FIELDS, Columns, Row, Stage

NAMESPACE = "pause"
# Counters of their own namespaces. Their names are few, whatever is in the records: those of runners stay for good.
REASONS, UNKNOWN, COLUMNS, STAGES = (f"{NAMESPACE}.{kind}" for kind in ("reasons", "unknown", "columns", "stages"))
BLAMED = frozenset((*FIELDS, "record", "file", "embedding", "version"))
MOST_NAMES, MOST_LETTERS = 50, 40  # of unknown fields, in each process
OTHERS = "others"
ENOUGH = 100  # records: a name of --columns that is in none of so many is misspelt, or they are rare
AT_ONCE = 1000  # names that are kept until they are counted
GOOD_ENDS = ("stale", "unchanged", "indexed", "deleted")
RECENT_SECONDS = 60.0  # so long a record's wait stands for that of those behind it

counted_here: dict[str, Counter[str]] = {kind: Counter() for kind in (NAMESPACE, REASONS, UNKNOWN, COLUMNS, STAGES)}
# By the names of --columns that are looked for: records, and which of the names were in one.
_rows: Counter[tuple[str, ...]] = Counter()
_found: dict[tuple[str, ...], set[str]] = {}
_lock = threading.Lock()


def count(name: str, number: int = 1) -> None:
    _count(NAMESPACE, name, number)


def count_letter(stage: Stage, reason: str, kind: str) -> None:
    """A dead letter; `reason` begins with the field that is to blame."""
    blamed = reason.partition(":")[0]
    _count(REASONS, f"{blamed if blamed in BLAMED else 'record'}: {kind}", 1)
    _count(STAGES, stage, 1)


def count_unknown(name: str, number: int) -> None:
    """A name as records have it, so it may be anything."""
    told = ascii(name[:MOST_LETTERS])[1:-1]
    with _lock:
        seen = counted_here[UNKNOWN]
        told = told if told in seen or len(seen) < MOST_NAMES else OTHERS
    _count(UNKNOWN, told, number)


def count_column(name: str, number: int) -> None:
    """Records with a name of --columns."""
    _count(COLUMNS, name, number)


def counted(*namespaces: str) -> list[Counter[str]]:
    """In this process, all at one moment."""
    with _lock:
        return [Counter(counted_here[namespace]) for namespace in namespaces]


def here() -> dict[str, int]:
    return dict(counted(NAMESPACE)[0])


def _count(namespace: str, name: str, number: int) -> None:
    if number:
        _counter(namespace, name).inc(number)
        with _lock:
            counted_here[namespace][name] += number


@lru_cache(1000)
def _counter(namespace: str, name: str) -> Any:
    return Metrics.counter(namespace, name)


class FieldNames:
    """Names as records have them: those that nobody reads, and those of --columns that no record has.

    Counted at the end of each bundle: at every record it would cost as much as parsing."""

    def __init__(self, columns: Columns):
        self._taken = columns.taken
        self._wanted = tuple(sorted(set(columns.names.values())))
        self._rows = 0
        self._found: Counter[str] = Counter()
        self._unknown: Counter[str] = Counter()

    def look_at(self, row: Row, unknown: int) -> None:
        """`unknown` is how many names of the row nobody reads."""
        self._rows += 1
        for name in self._wanted:
            if name in row:
                self._found[name] += 1
        if unknown:
            for name in row:
                if name not in self._taken:
                    self._unknown[name] += 1
            if len(self._unknown) > AT_ONCE:
                self.count()

    def count(self) -> None:
        for name, number in self._found.items():
            count_column(name, number)
        for name, number in self._unknown.most_common():
            count_unknown(name, number)
        if self._wanted:
            self._warn()
        self._rows, self._found, self._unknown = 0, Counter(), Counter()

    def _warn(self) -> None:
        """Once, and not of files that were looked into before the job: for streams, whose summary may never come."""
        with _lock:
            before = _rows[self._wanted]
            _rows[self._wanted] += self._rows
            found = _found.setdefault(self._wanted, set())
            found.update(self._found)
            absent = [name for name in self._wanted if name not in found]
            if absent and before < ENOUGH <= before + self._rows:
                logging.warning("--columns: %s is in none of the first %d records", ", ".join(absent), ENOUGH)


# what a process can tell of itself

disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each, which nobody asks for
registry, of_streams = CollectorRegistry(), CollectorRegistry()
# From the time of a message, or of a watched file, until it was written; a dump's age would say nothing of us.
_freshness = Histogram(
    "pause_pipeline_freshness_seconds",
    "From the publication of a record to its being written.",
    registry=of_streams,
    buckets=(0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 4 * 3600, 24 * 3600),
)
_batches = Histogram(
    "pause_pipeline_batch_companies",
    "Companies in a batch that is looked up.",
    registry=registry,
    buckets=[2**power for power in range(13)],
)
_calls = Histogram(
    "pause_pipeline_call_seconds",
    "Seconds that one batch was with another service.",
    ["part"],
    registry=registry,
    buckets=[0.001 * 2**power for power in range(19)],  # 1 ms to 4 minutes
)
_failed = Count("pause_pipeline_failed_batches", "Batches whose work failed and comes again.", registry=registry)

serving, lookup, write = (_calls.labels(part) for part in ("serving", "lookup", "write"))


class Arrived(Protocol):
    """A company or a task."""

    @property
    def arrived(self) -> int | None: ...


class Watch:
    """What is under way in this process, and what was seen last."""

    def __init__(self) -> None:
        self.model = ""  # fingerprint of that which the last batch was planned for
        self.last_success = 0.0  # when a record last came to a good end
        self._waited, self._waited_at = 0.0, 0.0
        self._under_way: dict[int, tuple[int, int | None]] = {}  # a batch: its records, the time of the oldest
        self._lock = threading.Lock()

    def read(self, arrived: int | None, now: int) -> None:
        """Times in microseconds. Without a lock: what two threads make of it is right to a record."""
        waited = (now - arrived) / 1e6 if arrived is not None else 0.0
        if waited >= self._waited or now / 1e6 - self._waited_at > RECENT_SECONDS:
            self._waited, self._waited_at = waited, now / 1e6

    def waited(self, now: float) -> float:
        """The most that a record of the last minute had waited before it was read; those behind it wait as long."""
        return self._waited if now - self._waited_at <= RECENT_SECONDS else 0.0

    def begin(self, batch: Sequence[Arrived]) -> None:
        with self._lock:
            self._under_way[id(batch)] = len(batch), oldest(batch)

    def end(self, batch: Sequence[Arrived]) -> None:
        with self._lock:
            self._under_way.pop(id(batch), None)

    def under_way(self) -> list[tuple[int, int | None]]:
        with self._lock:
            return list(self._under_way.values())


watch = Watch()
Result = TypeVar("Result")


def oldest(batch: Iterable[Arrived]) -> int | None:
    return min((one.arrived for one in batch if one.arrived is not None), default=None)


def watched(work: Callable[[Any, Any], Result]) -> Callable[[Any, Any], Result]:
    """For the `work` of a step: its batch is under way meanwhile."""

    @wraps(work)
    def noted(step: Any, batch: Any) -> Result:
        watch.begin(batch)
        try:
            return work(step, batch)
        except Exception:
            _failed.inc()
            raise
        finally:
            watch.end(batch)

    return noted


def planned(companies: int, model: str) -> None:
    _batches.observe(companies)
    watch.model = model


def ended(counts: Counter[str], ages: Iterable[float]) -> None:
    """`ages` are seconds from the publication of each that was written until then."""
    if any(counts[name] for name in GOOD_ENDS):
        watch.last_success = time.time()
    for age in ages:
        _freshness.observe(max(0.0, age))
