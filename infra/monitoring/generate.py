"""The dashboards as Grafana reads them: `python -m infra.monitoring.generate --to infra/monitoring/dashboards`, in the
environment of `infra/checks/requirements.txt`, which has Grafana's own builders."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any

from grafana_foundation_sdk.builders import common, stat, timeseries
from grafana_foundation_sdk.builders import dashboard as dashboards
from grafana_foundation_sdk.builders import table as tables
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import GraphThresholdsStyleMode
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    DataSourceRef,
    Threshold,
    ThresholdsMode,
)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from common.command import Parser, exit_code
from infra.monitoring.boards.overview import OVERVIEW
from infra.monitoring.boards.pipeline import PIPELINE
from infra.monitoring.boards.search import SEARCH
from infra.monitoring.boards.serving import SERVING
from infra.monitoring.panels import Dashboard, Panel

DASHBOARDS = (OVERVIEW, PIPELINE, SERVING, SEARCH)
HEIGHT = 8
TAG = "pause"
SOURCE = DataSourceRef(type_val="prometheus", uid="pause-prometheus")  # as grafana/datasources names it


def built(board: Dashboard) -> str:
    found = (
        dashboards.Dashboard(board.title)
        .uid(f"{TAG}-{board.name}")
        .description(board.about)
        .tags([TAG])
        .readonly()
        .timezone("browser")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .time("now-6h", "now")
        .refresh("30s")
        .link(dashboards.DashboardLink("PAUSE").type(DashboardLinkType.DASHBOARDS).tags([TAG]).keep_time(True))
    )
    numbers = itertools.count(1)
    for row in board.rows:
        found.with_row(dashboards.Row(row.title).id(next(numbers)))
        for one in row.panels:
            found.with_panel(_panel(one).id(next(numbers)))
    return f"{JSONEncoder(sort_keys=True, indent=2).encode(found.build())}\n"


def _panel(given: Panel) -> Any:
    panel: Any = {"graph": timeseries.Panel, "figure": stat.Panel, "table": tables.Panel}[given.kind]()
    panel.title(given.title).description(given.about).unit(given.unit).datasource(SOURCE)
    panel.span(given.width).height(HEIGHT)
    for letter, query in zip("ABCDEFGH", given.queries, strict=False):
        asked = Dataquery().expr(query.expression).legend_format(query.legend or "__auto").ref_id(letter)
        asked.datasource(SOURCE)
        panel.with_target(asked.range() if given.kind == "graph" else asked.instant())
        if given.kind == "table":
            asked.format(PromQueryFormat.TABLE)
    if given.kind == "graph":
        panel.min(0).fill_opacity(10)
        if given.limit is not None:
            panel.thresholds(_limit(given.limit))
            panel.thresholds_style(common.GraphThresholdsStyleConfig().mode(GraphThresholdsStyleMode.LINE))
    return panel


def _limit(value: float) -> Any:
    steps = [Threshold(color="green"), Threshold(value=value, color="red")]
    return dashboards.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps)


def write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for board in DASHBOARDS:
        (folder / f"{board.name}.json").write_text(built(board), encoding="utf-8")
        print(folder / f"{board.name}.json")


def main(argv: list[str] | None = None) -> int:
    parser = Parser(
        prog="python -m infra.monitoring.generate",
        description=__doc__,
        epilog="example:\n  build/infra-tools/bin/python -m infra.monitoring.generate --to infra/monitoring/dashboards",
    )
    parser.add_argument("--to", type=Path, required=True, metavar="FOLDER", help="where the JSON files go")
    arguments = parser.parse_args(argv)
    return exit_code(lambda: write(arguments.to))


if __name__ == "__main__":
    sys.exit(main())
