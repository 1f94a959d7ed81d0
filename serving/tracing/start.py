"""Turns tracing on for a program, by OpenTelemetry's own environment variables; off unless OTEL_TRACES_EXPORTER says
which exporter. docs/tracing.md has them all."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

from common.errors import InputError
from serving.tracing import spans

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor

EXPORTERS, SAMPLER, RATIO, SERVICE = (
    "OTEL_TRACES_EXPORTER",
    "OTEL_TRACES_SAMPLER",
    "OTEL_TRACES_SAMPLER_ARG",
    "OTEL_SERVICE_NAME",
)
DISABLED, PROTOCOL = "OTEL_SDK_DISABLED", "OTEL_EXPORTER_OTLP_PROTOCOL"
TRACES_PROTOCOL = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
# What a job takes along to its workers. Not the headers of the exporter: those may be secret.
TRAVELLING = (
    *(EXPORTERS, SAMPLER, RATIO, SERVICE, DISABLED, PROTOCOL, TRACES_PROTOCOL),
    *("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_RESOURCE_ATTRIBUTES"),
)
KNOWN = ("console", "otlp", "none")
BY_RATIO = ("traceidratio", "parentbased_traceidratio")
SAMPLERS = ("always_on", "always_off", "parentbased_always_on", "parentbased_always_off", *BY_RATIO)

_starting = threading.Lock()


def start(service: str, environment: Mapping[str, str] = os.environ) -> None:
    """Once for a process, however often it is called. `service` is its name unless OTEL_SERVICE_NAME gives another."""
    with _starting:
        exporters = wanted(environment)
        if not exporters or spans.is_on():
            return
        _check_sampler(environment)
        processors = [_processor(name, environment) for name in exporters]
        from opentelemetry import trace
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider

        named = {"service.name": environment.get(SERVICE) or service}
        provider = TracerProvider(resource=Resource.create(named))
        for processor in processors:
            provider.add_span_processor(processor)
        trace.set_tracer_provider(provider)  # Elasticsearch's client has spans of its own, and finds it there
        spans.use(provider.get_tracer("pause"))


def settings(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What workers elsewhere need to trace as this program does."""
    return {name: environment[name] for name in TRAVELLING if environment.get(name)} if wanted(environment) else {}


def start_worker(given: Mapping[str, str]) -> None:
    """As the program that made the job, but for what the worker's own environment says."""
    if given:
        for name, value in given.items():  # the library itself reads the environment alone
            os.environ.setdefault(name, value)
        start("pause-pipeline")


def wanted(environment: Mapping[str, str]) -> list[str]:
    """The exporters; none where tracing is off."""
    names = [name.strip() for name in environment.get(EXPORTERS, "").split(",") if name.strip()]
    for name in names:
        if name not in KNOWN:
            raise InputError(f"{EXPORTERS}={name} is not known; it takes {', '.join(KNOWN)}")
    off = environment.get(DISABLED, "").strip().lower() == "true"
    return [] if off else [name for name in dict.fromkeys(names) if name != "none"]


def _check_sampler(environment: Mapping[str, str]) -> None:
    """The library itself would only warn, and trace everything."""
    sampler, ratio = environment.get(SAMPLER, "").strip().lower(), environment.get(RATIO, "")
    if sampler and sampler not in SAMPLERS:
        raise InputError(f"{SAMPLER}={sampler} is not known; it takes {', '.join(SAMPLERS)}")
    if sampler in BY_RATIO and ratio:
        try:
            good = 0 <= float(ratio) <= 1
        except ValueError:
            good = False
        if not good:
            raise InputError(f"{RATIO}={ratio} is no ratio; it takes a number from 0 to 1")


def _processor(name: str, environment: Mapping[str, str]) -> SpanProcessor:
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SimpleSpanProcessor

    if name == "console":
        # One line a span, among the logs: standard output is what a command has made.
        lines = ConsoleSpanExporter(out=sys.stderr, formatter=lambda span: f"{span.to_json(indent=None)}\n")
        return SimpleSpanProcessor(lines)
    protocol = environment.get(TRACES_PROTOCOL) or environment.get(PROTOCOL) or "http/protobuf"
    if protocol != "http/protobuf":
        raise InputError(f"{PROTOCOL}={protocol} is not supported; it takes http/protobuf, at port 4318 of a collector")
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return BatchSpanProcessor(OTLPSpanExporter())
