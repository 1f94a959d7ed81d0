"""The price table, and the shapes of machines in it; what is missing or no price is named."""

from __future__ import annotations

import datetime
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.errors import InputError

DEFAULT = Path(__file__).with_name("prices.toml")
HOURS_A_MONTH = 730.0
DAYS_A_MONTH = HOURS_A_MONTH / 24


@dataclass(frozen=True)
class Machine:
    """One machine of a fleet, and what an hour of it costs."""

    vcpus: float
    memory_gb: float
    hour: float


@dataclass(frozen=True)
class Prices:
    """A table by section and name, all money in one currency."""

    file: Path
    table: dict[str, Any]

    @property
    def described(self) -> dict[str, str]:
        return {name: str(self._found(name)) for name in ("as_of", "region", "currency", "note")}

    def price(self, section: str, name: str) -> float:
        """Of one unit: what `name` says, an hour, a GB or a GB for a month."""
        value = self._found(section, name)
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise InputError(f"{section}.{name} of {self.file} is {value!r}; a number of at least 0 is expected")
        return float(value)

    def machine(self, kind: str, memory_gb: float | None = None) -> Machine:
        """With the memory of its shape, unless it is made to measure."""
        vcpus = self.price(f"machines.{kind}", "vcpus")
        memory = self.price(f"machines.{kind}", "memory_gb") if memory_gb is None else memory_gb
        hour = vcpus * self.price("compute", "vcpu_hour") + memory * self.price("compute", "gb_hour")
        return Machine(vcpus, memory, hour)

    def worker(self, kind: str) -> Machine:
        """One of Dataflow, `streaming` or `batch`."""
        vcpus, memory = self.price("machines.worker", "vcpus"), self.price("machines.worker", "memory_gb")
        hour = vcpus * self.price("dataflow", f"{kind}_vcpu_hour") + memory * self.price("dataflow", f"{kind}_gb_hour")
        return Machine(vcpus, memory, hour)

    def _found(self, *path: str) -> Any:
        names = [name for part in path for name in part.split(".")]
        found: Any = self.table
        for name in names:
            if not isinstance(found, dict) or name not in found:
                raise InputError(f"{self.file} lacks {'.'.join(names)}; add a line `{names[-1]} = ...`{_under(names)}")
            found = found[name]
        return found


def read(file: Path = DEFAULT) -> Prices:
    try:
        with file.open("rb") as content:
            prices = Prices(file, tomllib.load(content))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"--prices {file} cannot be read as a table of prices (TOML): {error}") from error
    if not isinstance(prices.table.get("as_of"), datetime.date):
        raise InputError(f"{file} does not say of which day its prices are; add a line such as `as_of = 2026-11-18`")
    return prices


def _under(names: list[str]) -> str:
    return f" under [{'.'.join(names[:-1])}]" if len(names) > 1 else ""
