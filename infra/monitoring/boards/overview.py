"""The first look: is what was published searchable, and do searches answer?"""

from __future__ import annotations

from infra.monitoring.panels import (
    FRESH_SECONDS,
    FRESHNESS,
    KNOWN_HERE,
    Dashboard,
    Query,
    Row,
    figure,
    graph,
    quantiles,
    table,
)

ENDS = "sum by (end) (rate(pause_pipeline_records_total[5m]))"

OVERVIEW = Dashboard(
    "overview",
    "PAUSE: overview",
    "Is what was published searchable, and do searches answer?",
    (
        Row(
            "Now",
            (
                table("Alerts that fire", 'ALERTS{alertstate="firing"}', width=12),
                figure("Parts of search", "short", Query("min by (part) (pause_search_part_up)", "{{part}}"), width=6),
                figure("Companies", "short", "max(pause_search_index_companies)", width=6),
            ),
        ),
        Row(
            "Publish to searchable",
            (
                graph(
                    "Freshness",
                    "s",
                    *quantiles("pause_pipeline_freshness_seconds"),
                    about=FRESHNESS,
                    limit=FRESH_SECONDS,
                ),
                graph("Backlog", "s", Query("pause_pipeline_backlog_age_seconds", "{{instance}}"), about=KNOWN_HERE),
                graph("Records by end", "ops", Query(ENDS, "{{end}}")),
            ),
        ),
        Row(
            "Questions",
            (
                graph("Search, p99", "s", Query("pause:search_seconds:p99_5m", "{{route}}")),
                graph("Requests that fail", "percentunit", Query("pause:search_errors:ratio_rate5m", "5xx")),
                graph(
                    "Answers of people",
                    "short",
                    Query("sum by (answer) (increase(pause_search_answers_total[1h]))", "{{answer}}"),
                    about="In an hour.",
                ),
            ),
        ),
    ),
)
