"""Prometheus' rules and Grafana's dashboards: held by promtool, by their generator, and against what services show."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from infra.checks.check import Check
from infra.checks.tools import python_tool
from infra.local.debian import debian_tool
from infra.monitoring.catalogue import kept, known

FOLDER = Path("infra/monitoring")
RUNBOOKS = Path("docs/alerts.md")
SECONDS = 120
HEADINGS = ("Checking", "SUCCESS", "Unit Testing")
RECORDED_LABELS = frozenset(("job", "route"))  # all that recording rules keep


def run(command: list[str | Path], folder: Path) -> tuple[int, str]:
    done = subprocess.run([str(part) for part in command], cwd=folder, capture_output=True, text=True, timeout=SECONDS)
    return done.returncode, done.stdout + done.stderr


def promtool() -> Path:
    return debian_tool("promtool", "prometheus")


def said(root: Path) -> dict[str, Any]:
    """What rules, tests and dashboards say."""
    code, told = run([python_tool("python"), "-m", "infra.monitoring.read"], root)
    if code:
        return {"wrong": [f"{FOLDER}: {_last(told)}"], "rules": [], "used": [], "tested": {}, "jobs": []}
    found: dict[str, Any] = json.loads(told)
    return found


def configuration(root: Path) -> list[str]:
    code, told = run([promtool(), "check", "config", FOLDER / "prometheus.yaml"], root)
    return [f"{FOLDER}: {line}" for line in _told(told)] if code else []


def rule_tests(root: Path) -> list[str]:
    files = sorted((root / FOLDER).glob("*.test.yaml"))
    code, told = run([promtool(), "test", "rules", *files], root)
    return [f"{FOLDER}: {line}" for line in _told(told)] if code else []


def tests_of_alerts(root: Path) -> list[str]:
    """Every alert is fired by one test and left quiet by another."""
    found = said(root)
    wrong = []
    for alert in _alerts(found):
        times = found["tested"].get(alert, {"fires": 0, "quiet": 0})
        wrong += [f"{FOLDER / 'rules.yaml'}: {alert}: no test {what}" for what, count in _missing(times) if not count]
    return wrong


def _missing(times: dict[str, int]) -> list[tuple[str, int]]:
    return [("fires it", times["fires"]), ("leaves it quiet", times["quiet"])]


def dashboards(root: Path) -> list[str]:
    """The files are what their generator makes, all of it and nothing else."""
    with tempfile.TemporaryDirectory() as made:
        code, told = run([python_tool("python"), "-m", "infra.monitoring.generate", "--to", made], root)
        if code:
            return [f"{FOLDER / 'generate.py'}: {_last(told)}"]
        wanted = {path.name: path.read_text() for path in Path(made).glob("*.json")}
    there = {path.name: path.read_text() for path in (root / FOLDER / "dashboards").glob("*.json")}
    differing = [name for name in sorted({*wanted, *there}) if wanted.get(name) != there.get(name)]
    how = "is not what the generator makes: python -m infra.monitoring.generate"
    return [f"{FOLDER / 'dashboards' / name}: {how}" for name in differing]


def metrics(root: Path) -> list[str]:
    """Every series that is asked for is one that a service shows, with the labels that are asked of it."""
    found = said(root)
    recorded = {rule["record"]: RECORDED_LABELS for rule in found["rules"] if "record" in rule}
    there = known(kept(root / FOLDER / "metrics.json"), recorded)
    wrong = [f"{FOLDER}/{line}" for line in found["wrong"]]
    for use in found["used"]:
        for one in use["selectors"]:
            where, metric = f"{FOLDER}/{use['where']}", one["metric"]
            if metric not in there:
                wrong.append(f"{where}: no service shows {metric}")
            else:
                strange = sorted({*one["labels"]} - there[metric])
                wrong += [f"{where}: {metric} has no label {label}" for label in strange]
    return wrong


def runbooks(root: Path) -> list[str]:
    """Every alert points to a section of its own, and every section is of an alert."""
    alerts = _alerts(found := said(root))
    if found["wrong"]:
        return found["wrong"]
    text = (root / RUNBOOKS).read_text()
    sections = re.findall(r"^## (\w+)$", text, re.M)
    wrong = [f"{RUNBOOKS}: no section for {alert}" for alert in alerts if alert not in sections]
    wrong += [f"{RUNBOOKS}: {section} is no alert" for section in sections if section not in alerts]
    for alert, rule in alerts.items():
        link, wanted = rule.get("annotations", {}).get("runbook_url"), f"{RUNBOOKS}#{alert.lower()}"
        if link != wanted:
            wrong.append(f"{FOLDER / 'rules.yaml'}: {alert}: runbook_url is {link}, and its section is {wanted}")
    for section, body in zip(sections, re.split(r"^## \w+$", text, flags=re.M)[1:], strict=True):
        lacking = [title for title in ("**Means**", "**See**", "**Do**") if title not in body]
        wrong += [f"{RUNBOOKS}: {section} has no {title}" for title in lacking]
    return wrong


def _alerts(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {rule["alert"]: rule for rule in found["rules"] if "alert" in rule}


def _told(text: str) -> list[str]:
    """promtool's own words, less its headings."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return [line for line in lines if line not in ("", "FAILED:") and not line.startswith(HEADINGS)]


def _last(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.strip()), "it said nothing")


CHECKS = [
    Check("prometheus configuration", configuration),
    Check("prometheus rules under test", rule_tests),
    Check("every alert has its tests", tests_of_alerts),
    Check("every alert has its runbook", runbooks),
    Check("dashboards are what code makes", dashboards),
    Check("metrics asked for are shown", metrics),
]
