"""Machines, hours and money for a workload, line by line, each with what it rests on."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

MONTH, ONCE, INSTEAD = "month", "once", "month instead"


@dataclass(frozen=True)
class Line:
    """One figure. `per` says what its money is for: every month, once, or every month instead of all the rest; a line
    without money is for information."""

    part: str
    what: str
    value: float
    unit: str
    because: str
    money: float = 0.0
    per: str = ""


@dataclass
class Estimate:
    """All lines of a workload. A warning is something that the lines do not cover, or that would not work as it is."""

    lines: list[Line] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def add(self, part: str, what: str, value: float, unit: str, because: str) -> None:
        self.lines.append(Line(part, what, value, unit, because))

    def bill(self, part: str, what: str, value: float, unit: str, because: str, money: float, per: str = MONTH) -> None:
        self.lines.append(Line(part, what, value, unit, because, money, per))

    def value(self, part: str, what: str) -> float:
        return next(line.value for line in self.lines if (line.part, line.what) == (part, what))

    @property
    def monthly(self) -> float:
        return sum(line.money for line in self.lines if line.per == MONTH)

    def once(self, part: str) -> float:
        return sum(line.money for line in self.lines if line.per == ONCE and line.part == part)

    def totals(self) -> dict[str, float]:
        parts = dict.fromkeys(line.part for line in self.lines if line.per == ONCE)
        return {"a month": self.monthly, **{f"{part}, once": self.once(part) for part in parts}}

    def to_json(self) -> dict[str, Any]:
        lines = [{**asdict(line), "value": _short(line.value), "money": round(line.money, 2)} for line in self.lines]
        totals = {name: round(money, 2) for name, money in self.totals().items()}
        return {"lines": lines, "totals": totals, "warnings": self.warnings}


def _short(value: float) -> float:
    """Four digits: nothing here was measured to more."""
    return float(f"{value:.4g}") if abs(value) < 1e4 else float(round(value))
