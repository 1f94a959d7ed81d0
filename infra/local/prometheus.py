"""Prometheus on this machine: the project's own configuration and rules, on targets that tests have started."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

from common.ports import free_port
from infra.local import processes
from infra.local.debian import debian_tool
from infra.local.processes import Process, new_folder

SETTINGS = Path("infra/monitoring")
TARGETS = re.compile(r"(?P<before>- job_name: (?P<job>\w+)\n(?:(?!\n\n).)*?targets: )\[[^\]]*\]", re.S)


class Prometheus(Process):
    """Asks every second, and counts the minutes for which an alert must hold as seconds."""

    def __init__(self, targets: Mapping[str, str]):
        """`targets`: of each job the HOST:PORT."""
        folder = new_folder("prometheus")
        configuration = hurried(targets, processes.ROOT / SETTINGS, folder)
        self.address = f"127.0.0.1:{free_port()}"
        command = [
            str(debian_tool("prometheus", "prometheus")),
            f"--config.file={configuration}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={self.address}",
        ]
        super().__init__("prometheus", command, folder)
        self.wait_until(self._ready)

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series of an instant, each with its `metric` and its `value`."""
        found: list[dict[str, Any]] = self._get("/api/v1/query", query=expression)["result"]
        return found

    def alerts(self) -> list[dict[str, Any]]:
        """The labels of those that fire."""
        found = self._get("/api/v1/alerts")["alerts"]
        return [alert["labels"] for alert in found if alert["state"] == "firing"]

    def _get(self, path: str, **parameters: str) -> Any:
        with urlopen(f"http://{self.address}{path}?{urlencode(parameters)}", timeout=30) as answer:
            return json.load(answer)["data"]

    def _ready(self) -> bool:
        try:
            with urlopen(f"http://{self.address}/-/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except (URLError, ConnectionError):
            return False


def hurried(targets: Mapping[str, str], settings: Path, folder: Path) -> Path:
    """The settings with other targets and quicker clocks, else as they are."""

    def target(found: re.Match[str]) -> str:
        return f'{found["before"]}["{targets.get(found["job"], "127.0.0.1:9")}"]'

    text = TARGETS.sub(target, (settings / "prometheus.yaml").read_text())
    path = folder / "prometheus.yaml"
    path.write_text(re.sub(r"_interval: 15s", "_interval: 1s", text))
    rules = (settings / "rules.yaml").read_text()
    (folder / "rules.yaml").write_text(re.sub(r"for: (\d+)[mh]$", r"for: \1s", rules, flags=re.M))
    return path
