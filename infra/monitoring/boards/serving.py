"""The endpoint: requests, batches, versions."""

from __future__ import annotations

from infra.monitoring.panels import EMBEDDED, Dashboard, Query, Row, graph, process, quantiles, table

SERVING = Dashboard(
    "serving",
    "PAUSE: serving",
    "The endpoint. Panels say so where TensorFlow Serving has no such figure.",
    (
        Row(
            "Requests",
            (
                graph(
                    "Predictions",
                    "reqps",
                    Query("sum by (status) (rate(:tensorflow:serving:request_count[5m]))", "{{status}}"),
                ),
                graph(
                    "Latency of a prediction",
                    "s",
                    *quantiles(":tensorflow:serving:request_latency", only='API="Predict"', scale=" / 1e6"),
                    about="A request of the pipeline holds many texts, one of a search a few.",
                    limit=5.0,
                ),
                graph("Predictions that fail", "percentunit", "pause:serving_errors:ratio_rate5m", limit=0.05),
            ),
        ),
        Row(
            "Batches",
            (
                graph("One run", "s", *quantiles(":tensorflow:serving:runtime_latency", scale=" / 1e6")),
                graph(
                    "Batch fill",
                    "percentunit",
                    Query(
                        "sum by (instance) (rate(pause_batch_fill_sum[5m])) "
                        "/ sum by (instance) (rate(pause_batch_fill_count[5m]))",
                        "{{instance}}",
                    ),
                    about=EMBEDDED,
                ),
                graph("Texts in a run", "short", *quantiles("pause_batch_rows"), about=EMBEDDED),
                graph("Queue", "short", Query("pause_queue_texts", "{{instance}}"), about=EMBEDDED),
                graph(
                    "Wasted on padding",
                    "percentunit",
                    Query(
                        "1 - sum by (instance) (rate(pause_real_tokens_total[5m])) "
                        "/ sum by (instance) (rate(pause_padded_tokens_total[5m]))",
                        "{{instance}}",
                    ),
                    about=EMBEDDED,
                ),
                graph(
                    "Texts a second",
                    "ops",
                    Query("sum by (instance) (rate(pause_batch_rows_sum[5m]))", "{{instance}}"),
                    about=EMBEDDED,
                ),
            ),
        ),
        Row(
            "Versions",
            (
                graph(
                    "Servers that have a version",
                    "short",
                    Query(
                        'count by (version, fingerprint) (pause_version{state="AVAILABLE"})',
                        "{{version}} {{fingerprint}}",
                    ),
                    about=f"Lines that differ for long are a skew between servers. {EMBEDDED}",
                ),
                table("Versions by server", "pause_version", about=EMBEDDED, width=8),
                graph(
                    "Loads that failed",
                    "short",
                    Query("pause_load_failures_total", "{{instance}} {{version}}"),
                    about=EMBEDDED,
                ),
            ),
        ),
        process("serving"),
    ),
)
