"""All series that the services show to Prometheus, by job, with their labels: kept in metrics.json, which a test holds
against the pages of running services. What rules and dashboards ask for must be in there."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

# Of every target: Prometheus' own. ALERTS is what it makes of rules.
ADDED = frozenset(("job", "instance"))
PROMETHEUS = {"up": frozenset[str](), "ALERTS": frozenset(("alertname", "alertstate", "severity"))}
_LINE = re.compile(r"^(?P<name>[a-zA-Z_:][\w:]*)(?:{(?P<labels>.*)})? \S+$", re.M)
_LABEL = re.compile(r'(\w+)="(?:[^"\\]|\\.)*"')

Series = dict[str, frozenset[str]]  # name: labels


def on_page(text: str) -> Series:
    """Of Prometheus' text format."""
    found: Series = {}
    for line in _LINE.finditer(text):
        found[line["name"]] = found.get(line["name"], frozenset()) | {*_LABEL.findall(line["labels"] or "")}
    return found


def kept(path: Path) -> dict[str, Series]:
    return {
        job: {name: frozenset(labels) for name, labels in series.items()}
        for job, series in json.loads(path.read_text()).items()
    }


def to_json(jobs: Mapping[str, Series]) -> str:
    plain = {job: {name: sorted(labels) for name, labels in sorted(series.items())} for job, series in jobs.items()}
    return f"{json.dumps(plain, indent=1)}\n"


def known(jobs: Mapping[str, Series], recorded: Mapping[str, frozenset[str]]) -> Series:
    """All that an expression may ask for."""
    everything: Series = dict(PROMETHEUS)
    for series in (*jobs.values(), recorded):
        for name, labels in series.items():
            everything[name] = everything.get(name, frozenset()) | labels
    return {name: labels | ADDED for name, labels in everything.items()}
