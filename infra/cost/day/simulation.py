"""A day of the stream, second by second: what waits, how fresh the index is, how many machines there are.

A fluid queue in order of arrival. The autoscalers look once a minute, as those of Kubernetes and Dataflow do in effect;
between two looks nothing depends on the backlog, so that a minute is computed at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from infra.cost.day.outages import DAY_SECONDS, Outage, away

LOOK = 60  # seconds between two looks of an autoscaler
TAIL = 6 * 3600  # seconds after the day in which what came in it may still be written
SETTLED = 10  # looks for which fewer must have been wanted before a fleet shrinks


@dataclass(frozen=True)
class Fleet:
    """Machines that are scaled: so many records a second each, there `delay` seconds after they were wanted."""

    name: str
    records_each: float
    least: int
    most: int
    delay: int

    def wanted(self, records_a_second: float, backlog: float, utilisation: float, drain: float) -> int:
        """To keep up at that utilisation, and to be rid of the backlog within `drain` seconds."""
        needed = (records_a_second / utilisation + backlog / drain) / self.records_each
        return int(np.clip(np.ceil(needed), self.least, self.most))


@dataclass(frozen=True)
class Day:
    """What happened, by the second; only the first day is judged."""

    arrived: np.ndarray
    capacity: np.ndarray
    backlog: np.ndarray
    waits: np.ndarray  # seconds; infinite where it was not written within the tail
    machines: dict[str, np.ndarray]
    outages: tuple[Outage, ...]
    writing: tuple[float, float]  # seconds from a message to a found company where nothing waits: p50 and p99

    def percentile(self, share: float, written: float) -> float:
        """Of the records, not of the seconds."""
        day = slice(0, DAY_SECONDS)
        order = np.argsort(self.waits[day])
        counted = np.cumsum(self.arrived[day][order])
        if counted[-1] == 0:
            return written
        return written + float(self.waits[day][order][np.searchsorted(counted, share / 100 * counted[-1])])

    def figures(self) -> dict[str, Any]:
        backlog = self.backlog[:DAY_SECONDS]
        largest = int(backlog.argmax())
        p50, p99 = self.percentile(50, self.writing[0]), self.percentile(99, self.writing[1])
        return {
            "records": float(self.arrived[:DAY_SECONDS].sum()),
            "freshness_p50_s": _finite(p50),
            "freshness_p99_s": _finite(p99),
            "longest_wait_s": _finite(self.percentile(100, 0.0)),
            "largest_backlog": round(float(backlog[largest])),
            "largest_backlog_at": f"{largest // 3600:02d}:{largest % 3600 // 60:02d}",
            "machines": {
                name: {"mean": round(float(count[:DAY_SECONDS].mean()), 2), "most": int(count[:DAY_SECONDS].max())}
                for name, count in self.machines.items()
            },
            "outages": [f"{one.part} for {one.seconds} s from second {one.begins}" for one in self.outages],
        }


def backlog_after(arrived: np.ndarray, capacity: np.ndarray, before: float = 0.0) -> np.ndarray:
    """[n]: what waits after each slot (Lindley's recursion, max(0, waiting + arrived - capacity)), without a loop: what
    would have been served beyond the last record is given back, the running minimum of the free sum."""
    free = before + np.cumsum(arrived - capacity)
    return free - np.minimum(np.minimum.accumulate(free), 0.0)


def waits(arrived: np.ndarray, backlog: np.ndarray) -> np.ndarray:
    """[n]: slots until the middle record of each slot's arrivals is served, in order of arrival."""
    came = np.cumsum(arrived)
    served = came - backlog
    middle = came - arrived / 2
    slot = np.searchsorted(served, middle - 1e-6, side="left")
    found = np.where(slot < len(served), slot, np.inf)
    return np.maximum(found - np.arange(len(arrived)), 0.0)


def simulate(
    arrived: np.ndarray,
    fleets: Sequence[Fleet],
    outages: Sequence[Outage] = (),
    limit: float = np.inf,
    utilisation: float = 0.6,
    drain: float = 600.0,
    writing: tuple[float, float] = (0.0, 0.0),
) -> Day:
    """`limit`: records a second that the index takes, however many machines there are."""
    seconds, gone = len(arrived), away(outages, len(arrived))
    looks = range(0, seconds, LOOK)
    stable = {fleet.name: np.full(len(looks), fleet.least) for fleet in fleets}  # wanted for SETTLED looks, the most
    there = {fleet.name: np.full(len(looks), fleet.least) for fleet in fleets}
    asked = {fleet.name: np.full(len(looks), fleet.least) for fleet in fleets}
    capacity, backlog, waiting = np.zeros(seconds), np.zeros(seconds), 0.0
    for look, begins in enumerate(looks):
        minute = slice(begins, begins + LOOK)
        recent = float(arrived[max(0, begins - LOOK) : begins].mean()) if begins else 0.0
        able = limit
        for fleet in fleets:
            name = fleet.name
            asked[name][look] = fleet.wanted(recent, waiting, utilisation, drain)
            stable[name][look] = asked[name][max(0, look - SETTLED) : look + 1].max()
            ready = stable[name][max(0, look - -(-fleet.delay // LOOK))]
            before = there[name][look - 1] if look else fleet.least
            there[name][look] = min(stable[name][look], max(before, ready))
            able = min(able, there[name][look] * fleet.records_each)
        capacity[minute] = np.where(gone[minute], 0.0, able)
        backlog[minute] = backlog_after(arrived[minute], capacity[minute], waiting)
        waiting = float(backlog[minute][-1])
    machines = {name: np.repeat(counts, LOOK)[:seconds] for name, counts in there.items()}
    return Day(arrived, capacity, backlog, waits(arrived, backlog), machines, tuple(outages), writing)


def _finite(value: float) -> float | None:
    return round(value, 2) if np.isfinite(value) else None
