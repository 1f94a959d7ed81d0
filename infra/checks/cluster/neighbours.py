"""What other folders of infra/ say too: the rights of Elasticsearch's users, which a check of compose tries on a real
server, and the jobs that Prometheus' rules know."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import yaml

from infra.checks.cluster.render import FOLDER, Overlay, labels, overlays
from infra.checks.cluster.wiring import matches
from infra.local.processes import ROOT

ROLES = FOLDER / "components" / "elasticsearch" / "roles.yml"
TRIED = Path("infra") / "compose" / "roles.tsv"
SCRAPED = Path("infra") / "monitoring" / "prometheus.yaml"


def unlike_neighbours(root: Path) -> list[str]:
    away = [f"{path.as_posix()}: there is no such file" for path in (TRIED, SCRAPED) if not (ROOT / path).exists()]
    if away:
        return away
    known = {one["job_name"] for one in yaml.safe_load((ROOT / SCRAPED).read_text())["scrape_configs"]}
    return [*_roles(root), *(found for overlay in overlays(root) for found in _jobs(overlay, known))]


def _roles(root: Path) -> Iterator[str]:
    own = yaml.safe_load((root / ROLES).read_text())
    lines = [line.split("\t") for line in (ROOT / TRIED).read_text().splitlines()]
    tried = {f"pause_{name}": json.loads(rights) for name, rights in lines}
    for name in sorted(own.keys() | tried.keys()):
        if own.get(name) != tried.get(name):
            yield f"{ROLES.as_posix()}: {name} has other rights than in {TRIED.as_posix()}, or is in one of them alone"


def _jobs(overlay: Overlay, known: set[str]) -> Iterator[str]:
    for one in overlay.of("ServiceMonitor"):
        for service in (each for each in overlay.of("Service") if matches(one["spec"]["selector"], labels(each))):
            job = labels(service).get(one["spec"].get("jobLabel", ""), service["metadata"]["name"])
            if job not in known:
                yield overlay.finding(one, f"its job is {job}; rules and dashboards know {', '.join(sorted(known))}")
