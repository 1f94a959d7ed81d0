"""What rules, their tests and dashboards say, as JSON: `python -m infra.monitoring.read`, in the environment of
`infra/checks/requirements.txt`, which has a parser of Prometheus' language."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import yaml

FOLDER = Path("infra/monitoring")
CHILDREN = ("expr", "lhs", "rhs", "args", "vector_selector", "param")

Said = dict[str, Any]


def rules(folder: Path) -> list[Said]:
    groups = yaml.safe_load((folder / "rules.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def expressions(folder: Path) -> Iterator[tuple[str, str]]:
    """(where, expression) of all rules and panels."""
    for rule in rules(folder):
        yield f"rules.yaml, {rule.get('alert') or rule.get('record')}", rule["expr"]
    for path in sorted((folder / "dashboards").glob("*.json")):
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel.get("targets", ()):
                yield f"dashboards/{path.name}, {panel['title']}", target["expr"]


def selectors(expression: str) -> list[Said]:
    """Each with its metric, its matchers as they stand, and the labels that it is expected to have."""
    found: list[Said] = []

    def walk(node: Any, needed: frozenset[str]) -> None:
        modifier = getattr(node, "modifier", None)
        if type(node).__name__ == "AggregateExpr" and modifier and modifier.type == promql_parser.AggModifierType.By:
            needed |= {*modifier.labels}
        if type(node).__name__ == "VectorSelector":
            labels = needed | {matcher.name for matcher in node.matchers.matchers}
            shown = str(node.prettify()).partition(" offset")[0]
            found.append({"metric": node.name, "labels": sorted(labels), "selector": shown})
        for child in CHILDREN:
            below = getattr(node, child, None)
            for one in below if isinstance(below, list) else [below] if below is not None else []:
                walk(one, needed)

    walk(promql_parser.parse(expression), frozenset())
    return found


def tested(folder: Path) -> Said:
    """By alert: how often its tests expect it, and how often they expect it to be quiet."""
    found: Said = {}
    for path in sorted(folder.glob("*.test.yaml")):
        for test in yaml.safe_load(path.read_text())["tests"]:
            for asked in test.get("alert_rule_test", ()):
                counts = found.setdefault(asked["alertname"], {"fires": 0, "quiet": 0})
                counts["fires" if asked.get("exp_alerts") else "quiet"] += 1
    return found


def read(folder: Path) -> Said:
    used, wrong = [], []
    for where, expression in expressions(folder):
        try:
            used.append({"where": where, "expression": expression, "selectors": selectors(expression)})
        except ValueError as error:
            wrong.append(f"{where}: {error}")
    jobs = yaml.safe_load((folder / "prometheus.yaml").read_text())["scrape_configs"]
    return {"rules": rules(folder), "used": used, "wrong": wrong, "tested": tested(folder), "jobs": jobs}


if __name__ == "__main__":
    json.dump(read(FOLDER), sys.stdout)
