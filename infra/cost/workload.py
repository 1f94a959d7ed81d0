"""What the system has to do, and what is taken for granted of it; every one of these is a flag."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from common.errors import InputError

# name: (least, most, what it means)
BOUNDS: dict[str, tuple[float, float, str]] = {
    "companies": (1, 1e9, "companies in the index"),
    "updates_per_day": (0, 1e10, "records that arrive on the stream"),
    "questions_per_second": (0, 1e6, "of people and programs, in the busiest hour"),
    "changed": (0, 1, "share of the updates whose text is another: only these are encoded"),
    "text_questions": (0, 1, "share of the questions that are typed, and encoded; the others name a company"),
    "record_bytes": (1, 4e6, "of one record as JSON"),
    "dimension": (1, 4096, "numbers a vector"),
    "peak": (1, 100, "records in the busiest hour, against the mean of the day"),
    "utilisation": (0.05, 0.95, "of a machine that is planned for; the rest is for bursts"),
    "load_hours": (0.01, 1e5, "in which the first load, and a reindex, should be done"),
    "replicas": (0, 10, "copies of the index beside the first"),
    "least_machines": (1, 1000, "of serving and of search, so that one may fail"),
}


@dataclass(frozen=True)
class Workload:
    """In the units of `BOUNDS`."""

    companies: float
    updates_per_day: float
    questions_per_second: float
    changed: float = 0.5
    text_questions: float = 0.2
    record_bytes: float = 1000.0
    dimension: int = 384
    peak: float = 3.0
    utilisation: float = 0.6
    load_hours: float = 24.0
    replicas: int = 1
    least_machines: int = 2

    def __post_init__(self) -> None:
        for field in fields(self):
            value, (least, most, _) = getattr(self, field.name), BOUNDS[field.name]
            if not math.isfinite(value) or not least <= value <= most:
                raise InputError(
                    f"--{field.name.replace('_', '-')} is {value:g}; a number from {least:g} to {most:g} is expected"
                )

    @property
    def updates_per_second(self) -> float:
        """In the mean of a day."""
        return self.updates_per_day / 86_400

    @property
    def peak_updates_per_second(self) -> float:
        return self.updates_per_second * self.peak
