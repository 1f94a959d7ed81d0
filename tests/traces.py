"""Spans, as programs write them by OpenTelemetry's console exporter."""

import json
import secrets
from typing import Any

CONSOLE = {"OTEL_TRACES_EXPORTER": "console"}
Span = dict[str, Any]


def new_traceparent() -> tuple[str, str]:
    """With its trace id."""
    trace = secrets.token_hex(16)
    return f"00-{trace}-{secrets.token_hex(8)}-01", trace


def spans_in(log: str, trace: str | None = None) -> list[Span]:
    """Of one trace, or all."""
    lines = (line for line in log.splitlines() if line.startswith('{"name"') and line.endswith("}"))
    found = [json.loads(line) for line in lines]
    return [one for one in found if trace in (None, one["context"]["trace_id"].removeprefix("0x"))]


def named(spans: list[Span], name: str) -> list[Span]:
    return [span for span in spans if span["name"] == name]


def id_of(span: Span) -> str:
    return str(span["context"]["span_id"])
