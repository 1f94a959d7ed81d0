"""What a dashboard is made of, without a word of Grafana's: rows of panels, each with its queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

EMBEDDED = "The embedded server only: TensorFlow Serving has no such figure."
FRESHNESS = "From the publication of a message, or the time of a watched file, to its being written."
FRESH_SECONDS = 60.0  # the objective of rules.yaml: 99 % of a stream's records within it
KNOWN_HERE = "As far as the process knows: what nobody has read yet only the subscription knows."


@dataclass(frozen=True)
class Query:
    """In Prometheus' language; the legend may name labels, as {{route}}."""

    expression: str
    legend: str = ""


@dataclass(frozen=True)
class Panel:
    """`unit` is one of Grafana's: s, short, bytes, percentunit, reqps, ops."""

    title: str
    unit: str
    queries: tuple[Query, ...]
    about: str = ""
    kind: Literal["graph", "figure", "table"] = "graph"
    width: int = 8  # of 24
    limit: float | None = None  # drawn as a line: what an alert or an objective says


@dataclass(frozen=True)
class Row:
    """Panels under one heading."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Dashboard:
    """`name` is that of its file, and of its address in Grafana."""

    name: str
    title: str
    about: str
    rows: tuple[Row, ...]


def graph(title: str, unit: str, *queries: Query | str, about: str = "", limit: float | None = None) -> Panel:
    return Panel(title, unit, _queries(queries), about, limit=limit)


def figure(title: str, unit: str, *queries: Query | str, about: str = "", width: int = 4) -> Panel:
    return Panel(title, unit, _queries(queries), about, "figure", width)


def table(title: str, *queries: Query | str, about: str = "", width: int = 12) -> Panel:
    return Panel(title, "short", _queries(queries), about, "table", width)


def quantiles(metric: str, by: str = "", only: str = "", scale: str = "", window: str = "5m") -> list[Query]:
    """p50, p95 and p99 of a histogram, or where it is told `by` a label its p99 alone."""
    labels, chosen = f"le, {by}" if by else "le", f"{{{only}}}" if only else ""

    def quantile(share: float) -> str:
        return f"histogram_quantile({share}, sum by ({labels}) (rate({metric}_bucket{chosen}[{window}]))){scale}"

    if by:
        return [Query(quantile(0.99), " ".join(f"{{{{{label}}}}}" for label in by.split(", ")))]
    return [Query(quantile(share), f"p{round(100 * share)}") for share in (0.5, 0.95, 0.99)]


def process(job: str) -> Row:
    """The process itself; TensorFlow Serving tells nothing of it."""
    about = EMBEDDED if job == "serving" else ""
    return Row(
        "Process",
        (
            graph(
                "Memory", "bytes", Query(f'process_resident_memory_bytes{{job="{job}"}}', "{{instance}}"), about=about
            ),
            graph(
                "Cores in use",
                "short",
                Query(f'rate(process_cpu_seconds_total{{job="{job}"}}[5m])', "{{instance}}"),
                about=about,
            ),
            graph("Answers Prometheus", "short", Query(f'up{{job="{job}"}}', "{{instance}}")),
        ),
    )


def _queries(given: tuple[Query | str, ...]) -> tuple[Query, ...]:
    return tuple(Query(one) if isinstance(one, str) else one for one in given)
