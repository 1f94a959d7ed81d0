"""Search: questions, the index behind them, and what people answer."""

from __future__ import annotations

from infra.monitoring.panels import Dashboard, Query, Row, graph, process, quantiles, table

SEARCH = Dashboard(
    "search",
    "PAUSE: search and index",
    "Questions, the index behind them, and what people answer.",
    (
        Row(
            "Requests",
            (
                graph("By route", "reqps", "sum by (route) (rate(pause_search_seconds_count[5m]))"),
                graph("By status", "reqps", "sum by (status) (rate(pause_search_seconds_count[5m]))"),
                graph("By route, p99", "s", Query("pause:search_seconds:p99_5m", "{{route}}"), limit=1.0),
            ),
        ),
        Row(
            "What a question waits for",
            (
                graph("Index, p99", "s", *quantiles("pause_search_index_seconds", "operation")),
                graph("Endpoint", "s", *quantiles("pause_search_encoding_seconds"), about="For texts not cached."),
                graph("Parts that are well", "short", Query("pause_search_part_up", "{{instance}} {{part}}")),
            ),
        ),
        Row(
            "Index",
            (
                graph(
                    "Companies",
                    "short",
                    Query("max(pause_search_index_companies)", "companies"),
                    Query("max(pause_search_index_tombstones)", "tombstones"),
                ),
                graph("Size", "bytes", Query("max(pause_search_index_bytes)", "index")),
                graph(
                    "Bytes of a company",
                    "bytes",
                    "max(pause_search_index_bytes) / max(pause_search_index_companies)",
                ),
                graph(
                    "Age",
                    "s",
                    Query("time() - max(pause_search_index_newest_write_timestamp_seconds)", "last write"),
                    Query("time() - max(pause_search_index_newest_record_timestamp_seconds)", "newest record"),
                ),
                table("Index and model", "pause_search_index_info", width=8),
            ),
        ),
        Row(
            "Feedback",
            (
                graph(
                    "Answers in an hour",
                    "short",
                    Query("sum by (answer) (increase(pause_search_answers_total[1h]))", "{{answer}}"),
                ),
                graph(
                    "Lists that were not kept",
                    "short",
                    Query("increase(pause_search_shown_dropped_total[5m])", "{{instance}}"),
                ),
                graph(
                    "Lists without the why",
                    "short",
                    Query("increase(pause_search_unexplained_total[5m])", "{{instance}}"),
                    about="The endpoint was away, busy or of another model.",
                ),
            ),
        ),
        process("search"),
    ),
)
