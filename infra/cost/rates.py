"""What the parts manage, as it was measured: a file of rates, or the folder of results of `python -m benchmarks`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from common.errors import InputError

DEFAULT = Path(__file__).with_name("rates.json")
# name: unit. Those with `cores` beside them in the file are of all these cores together.
UNITS = {
    "encode": "texts/s",
    "pipeline": "records/s",
    "elasticsearch_write": "documents/s",
    "lancedb_write": "documents/s",
    "elasticsearch_question": "core-seconds/question",
    "search_question": "core-seconds/question",
    "recall": "recall@10",
    "search_p50": "ms",
    "search_p99": "ms",
    "freshness_p50": "s",
    "freshness_p99": "s",
    "elasticsearch_bytes": "bytes/company",
    "lancedb_bytes": "bytes/company",
    "record_bytes": "bytes/company",
    "companies": "companies",
}
Result = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Rate:
    """A measured figure, and how it came about."""

    value: float
    unit: str
    source: str
    cores: float = 1.0

    @property
    def a_core(self) -> float:
        return self.value / self.cores


@dataclass(frozen=True)
class Rates:
    """All of `UNITS`, with the machine and the day they were measured on."""

    cpu: str
    date: str
    rates: dict[str, Rate]

    def __getitem__(self, name: str) -> Rate:
        return self.rates[name]

    def a_vcpu(self, name: str, cpu_factor: float) -> float:
        """So many a second does one vCPU, that does `cpu_factor` of what a measured core does."""
        return self[name].a_core * cpu_factor


def read(path: Path = DEFAULT) -> Rates:
    """A folder changes what its results tell, and leaves the rest as it is in the file of this package."""
    return _with_results(_read_file(DEFAULT), path) if path.is_dir() else _read_file(path)


def _read_file(file: Path) -> Rates:
    try:
        given = json.loads(file.read_text(encoding="utf-8"))
        rates = {name: Rate(**{**rate, "value": float(rate["value"])}) for name, rate in given["rates"].items()}
        read = Rates(given["cpu"], given["date"], rates)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"--rates {file} cannot be read as rates, as {DEFAULT.name} has them: {error}") from error
    for name, unit in UNITS.items():
        rate = rates.get(name)
        if rate is None or rate.unit != unit or rate.value <= 0 or rate.cores <= 0:
            raise InputError(f"{file} needs the rate {name!r}, above 0, in {unit}; it has {rate or 'none'}")
    return read


def _ours(benchmark: str, row: str, column: str = "ours", times: float = 1.0) -> Callable[[dict[str, Result]], float]:
    return lambda results: float(results[benchmark][row][column]) * times


# Where a result tells a rate, the surest first. `stream` sends half of what the encoder manages.
_FROM_RESULTS: list[tuple[str, str, Callable[[dict[str, Result]], float]]] = [
    ("encode", "serving", _ours("serving", "one embed() of all texts / encoder in process")),
    ("encode", "stream", _ours("stream", "Elasticsearch", "messages/s", 2.0)),
    ("elasticsearch_write", "index", _ours("index", "Elasticsearch sink / parallel_bulk")),
    ("lancedb_write", "index", _ours("index", "LanceDB sink / Elasticsearch sink")),
    ("recall", "index", _ours("index", "Elasticsearch, approximate / exact")),
    ("search_p50", "search", _ours("search", "Elasticsearch: 50 people at once", "p50 ms")),
    ("search_p99", "search", _ours("search", "Elasticsearch: 50 people at once", "p99 ms")),
    ("freshness_p50", "stream", _ours("stream", "Elasticsearch", "p50 s")),
    ("freshness_p99", "stream", _ours("stream", "Elasticsearch", "p99 s")),
]
_ON_ALL_CORES = {"encode", "elasticsearch_write", "lancedb_write"}


def _with_results(known: Rates, folder: Path) -> Rates:
    files = {name: folder / f"{name}.json" for name in {benchmark for _, benchmark, _ in _FROM_RESULTS}}
    there = {name: file for name, file in files.items() if file.exists()}
    if not there:
        raise InputError(f"--rates {folder} holds none of {', '.join(sorted(f'{name}.json' for name in files))}")
    rates, cores, told = dict(known.rates), os.cpu_count() or 1, set()
    try:
        results = {name: json.loads(file.read_text(encoding="utf-8")) for name, file in there.items()}
        for name, benchmark, figure in _FROM_RESULTS:
            if benchmark in results and name not in told:
                told.add(name)
                source = f"{files[benchmark]}, by python -m benchmarks {benchmark}"
                counted = float(cores) if name in _ON_ALL_CORES else 1.0
                rates[name] = Rate(figure(results), UNITS[name], source, counted)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"--rates {folder} holds a result that is not as its benchmark writes it: {error}") from error
    newest = max(file.stat().st_mtime for file in there.values())
    day = datetime.fromtimestamp(newest, UTC).date().isoformat()
    return Rates(f"this machine ({cores} cores), and for what was not measured {known.cpu}", day, rates)
