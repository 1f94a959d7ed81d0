"""The checks of rules and dashboards: all is well as it is, and a mistake of each kind is named."""

import json
import re
import shutil
from pathlib import Path

import pytest
from real_servers import available

from infra.checks.monitoring import CHECKS
from infra.checks.tools import python_tool
from infra.local.debian import debian_tool

ROOT = Path(__file__).parents[2]
BY_NAME = {check.name: check for check in CHECKS}
RULES, DASHBOARD = "infra/monitoring/rules.yaml", "infra/monitoring/dashboards/search.json"


@pytest.fixture(scope="module", autouse=True)
def tools():
    available(lambda: (debian_tool("promtool", "prometheus"), python_tool("python")))


@pytest.fixture
def project(tmp_path):
    """A copy of what the checks read."""
    left_out = shutil.ignore_patterns("__pycache__", "local")
    for folder in ("infra", "common"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=left_out)
    for room in ("index", "pipelines", "search", "serving"):
        (tmp_path / room).symlink_to(ROOT / room)
    (tmp_path / "docs").mkdir()
    shutil.copy(ROOT / "docs" / "alerts.md", tmp_path / "docs")
    return tmp_path


@pytest.mark.parametrize("name", BY_NAME)
def test_all_is_well(name):
    assert BY_NAME[name].run(ROOT) == []


def plant(project, file, wrong, right):
    """`right` must be there, once or more: else nothing would be planted."""
    text = (project / file).read_text()
    assert right in text
    (project / file).write_text(text.replace(right, wrong, 1))


NEW_ALERT = """      - alert: NewOne
        expr: up == 0
        labels: {severity: page}
        annotations: {summary: New., runbook_url: docs/alerts.md#newone}
      - alert: TargetDown
"""

PLANTED = {
    "a metric that does not exist": (
        "metrics asked for are shown",
        (RULES, "pause_pipeline_backlog_seconds > 600", "pause_pipeline_backlog_age_seconds > 600"),
        "rules.yaml, BacklogOld: no service shows pause_pipeline_backlog_seconds",
    ),
    "a metric that a service shows no more": (
        "metrics asked for are shown",
        ("infra/monitoring/metrics.json", '"pause_queue_length"', '"pause_queue_texts"'),
        "rules.yaml, NoVersionServed: no service shows pause_queue_texts",
    ),
    "a label that a metric has not": (
        "metrics asked for are shown",
        (RULES, 'pause_version{status="AVAILABLE"}', 'pause_version{state="AVAILABLE"}'),
        "rules.yaml, NoVersionServed: pause_version has no label status",
    ),
    "a panel on a metric that does not exist": (
        "metrics asked for are shown",
        (DASHBOARD, "max(pause_search_index_size)", "max(pause_search_index_bytes)"),
        "dashboards/search.json, Size: no service shows pause_search_index_size",
    ),
    "an expression that is none": (
        "prometheus configuration",
        (
            RULES,
            "increase(pause_pipeline_failed_batches_total[10m] > 3",
            "increase(pause_pipeline_failed_batches_total[10m]) > 3",
        ),
        "parse error",
    ),
    "an unknown field": (
        "prometheus configuration",
        ("infra/monitoring/prometheus.yaml", "scrape_intervall: 15s", "scrape_interval: 15s"),
        "scrape_intervall",
    ),
    "an alert that never fires": (
        "prometheus rules under test",
        (RULES, "pause_pipeline_backlog_age_seconds > 60000", "pause_pipeline_backlog_age_seconds > 600"),
        "BacklogOld",
    ),
    "an alert that fires without reason": (
        "prometheus rules under test",
        (RULES, "pause_pipeline_backlog_age_seconds > 1", "pause_pipeline_backlog_age_seconds > 600"),
        "BacklogOld",
    ),
    "an alert without a test": (
        "every alert has its tests",
        (RULES, NEW_ALERT, "      - alert: TargetDown\n"),
        "rules.yaml: NewOne: no test fires it",
    ),
    "an alert without a runbook": (
        "every alert has its runbook",
        (RULES, NEW_ALERT, "      - alert: TargetDown\n"),
        "docs/alerts.md: no section for NewOne",
    ),
    "a runbook of no alert": (
        "every alert has its runbook",
        ("docs/alerts.md", "## TargetGone", "## TargetDown"),
        "docs/alerts.md: TargetGone is no alert",
    ),
    "a link into nowhere": (
        "every alert has its runbook",
        (RULES, "docs/alerts.md#backlog\n", "docs/alerts.md#backlogold\n"),
        "BacklogOld: runbook_url is docs/alerts.md#backlog, and its section is docs/alerts.md#backlogold",
    ),
    "a dashboard edited by hand": (
        "dashboards are what code makes",
        (DASHBOARD, '"title": "Bytes"', '"title": "Size"'),
        "dashboards/search.json: is not what the generator makes",
    ),
    "a dashboard that was not generated again": (
        "dashboards are what code makes",
        ("infra/monitoring/boards/serving.py", '"Waiting"', '"Queue"'),
        "dashboards/serving.json: is not what the generator makes",
    ),
}


@pytest.mark.parametrize("mistake", PLANTED)
def test_a_mistake_is_named(mistake, project):
    name, (file, wrong, right), told = PLANTED[mistake]
    plant(project, file, wrong, right)
    assert told in "\n".join(BY_NAME[name].run(project))


def test_a_dashboard_that_nobody_makes_is_named(project):
    (project / "infra/monitoring/dashboards/mine.json").write_text('{"panels": []}')
    (found,) = BY_NAME["dashboards are what code makes"].run(project)
    assert "dashboards/mine.json" in found


def test_panels_are_told_apart_and_know_their_source(project):
    source = re.search(r"uid: (\S+)", (ROOT / "infra/monitoring/grafana/datasources/prometheus.yaml").read_text())[1]
    for path in (ROOT / "infra/monitoring/dashboards").glob("*.json"):
        panels = json.loads(path.read_text())["panels"]
        assert len({panel["id"] for panel in panels}) == len(panels) > 10
        targets = [target for panel in panels for target in panel.get("targets", ())]
        assert {target["datasource"]["uid"] for target in targets} == {source}
