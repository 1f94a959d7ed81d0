"""The pipeline: where records are, how old they are and what becomes of them."""

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
    process,
    quantiles,
    table,
)

PIPELINE = Dashboard(
    "pipeline",
    "PAUSE: pipeline",
    "Where records are, how old they are and what becomes of them. Of runs with --metrics_port; Dataflow has the same "
    "counters in Cloud Monitoring.",
    (
        Row(
            "Throughput",
            (
                graph(
                    "Records by end",
                    "ops",
                    Query("sum by (end) (rate(pause_pipeline_records_total[5m]))", "{{end}}"),
                    Query("sum(rate(pause_pipeline_read_total[5m]))", "read"),
                ),
                graph("Texts encoded", "ops", Query("sum(rate(pause_pipeline_encoded_total[5m]))", "encoded")),
                graph(
                    "Batch fill",
                    "percentunit",
                    Query(
                        "sum by (instance) (rate(pause_pipeline_batch_companies_sum[5m])) "
                        "/ sum by (instance) (rate(pause_pipeline_batch_companies_count[5m])) "
                        "/ max by (instance) (pause_pipeline_batch_size)",
                        "{{instance}}",
                    ),
                    about="Companies in a batch, of those it has room for. A quiet stream sends small ones.",
                ),
            ),
        ),
        Row(
            "Freshness",
            (
                graph(
                    "Publish to written",
                    "s",
                    *quantiles("pause_pipeline_freshness_seconds"),
                    about=FRESHNESS,
                    limit=FRESH_SECONDS,
                ),
                graph(
                    "Later than a minute",
                    "percentunit",
                    Query("pause:freshness_late:ratio_rate5m", "5 minutes"),
                    Query("pause:freshness_late:ratio_rate1h", "an hour"),
                    limit=0.01,
                ),
                graph(
                    "Oldest record",
                    "s",
                    Query("pause_pipeline_backlog_age_seconds", "not in the index"),
                    Query("pause_pipeline_oldest_under_way_seconds", "being worked on"),
                    about=KNOWN_HERE,
                ),
            ),
        ),
        Row(
            "What it waits for",
            (
                graph(
                    "Batches with others",
                    "short",
                    Query("sum by (part) (rate(pause_pipeline_call_seconds_sum[5m]))", "{{part}}"),
                    about="Seconds a second: as many batches are with the endpoint and the index on average.",
                ),
                graph("A batch, p99", "s", *quantiles("pause_pipeline_call_seconds", "part")),
                graph(
                    "Under way", "short", Query("pause_pipeline_under_way_records", "{{instance}}"), about=KNOWN_HERE
                ),
            ),
        ),
        Row(
            "Trouble",
            (
                graph(
                    "Dead letters",
                    "ops",
                    Query("sum by (stage) (rate(pause_pipeline_dead_letters_total[5m]))", "{{stage}}"),
                    Query("sum(rate(pause_pipeline_unknown_fields_total[5m]))", "fields nobody reads"),
                ),
                graph("Share of dead letters", "percentunit", "pause:dead_letters:ratio_rate15m", limit=0.05),
                graph(
                    "Batches that fail",
                    "short",
                    Query("increase(pause_pipeline_failed_batches_total[5m])", "{{instance}}"),
                ),
                figure(
                    "Since the last good end",
                    "s",
                    Query("time() - pause_pipeline_last_success_timestamp_seconds", "{{instance}}"),
                    width=8,
                ),
                table("Runs", "pause_pipeline_info", width=8),
                table("Model", "pause_pipeline_model_info", about="That the last batch was for.", width=8),
            ),
        ),
        process("pipeline"),
    ),
)
