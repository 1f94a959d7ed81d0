"""Spans of OpenTelemetry where tracing is on; where it is off, nothing: not even the library is imported.

`start.py` turns it on, by the environment. A context travels between programs as a `traceparent` (W3C Trace Context).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

HEADER = "traceparent"
# In order; the first is what Google's own publishers write.
MESSAGE_ATTRIBUTES = ("googclient_traceparent", HEADER)

Given = ParamSpec("Given")
Made = TypeVar("Made")
Value = str | int | float | bool

_tracer: Tracer | None = None
_NOTHING = nullcontext()


def use(tracer: Tracer | None) -> None:
    """From now on; None turns it off. For start.py and tests: whatever was made before stays as it was."""
    global _tracer
    _tracer = tracer


def is_on() -> bool:
    return _tracer is not None


def span(
    name: str,
    *,
    parent: str | None = None,
    links: Sequence[str] = (),
    kind: str = "INTERNAL",
    **attributes: Value,
) -> AbstractContextManager[Span | None]:
    """The current one while it lasts, below the current one or, as a `traceparent`, its `parent`. An exception ends it
    as an error; the exception's words stay out, since they may quote what people asked or wrote."""
    return _NOTHING if _tracer is None else _span(_tracer, name, parent, links, kind, attributes)


@contextmanager
def _span(
    tracer: Tracer, name: str, parent: str | None, links: Sequence[str], kind: str, attributes: Mapping[str, Value]
) -> Iterator[Span]:
    from opentelemetry import trace

    with tracer.start_as_current_span(
        name,
        context=_context(parent) if parent else None,
        links=[trace.Link(one) for one in map(_span_context, links) if one.is_valid],
        kind=trace.SpanKind[kind],
        attributes=_named(attributes),
        record_exception=False,
        set_status_on_exception=False,
    ) as made:
        try:
            yield made
        except BaseException as error:
            made.set_status(trace.StatusCode.ERROR, type(error).__name__)
            raise


def note(**attributes: Value) -> None:
    """Of the current span, what is known only later."""
    if _tracer is not None:
        from opentelemetry import trace

        trace.get_current_span().set_attributes(_named(attributes))


def record(name: str, parent: object, began: float, ended: float, **attributes: Value) -> object:
    """A span that is over already, from and to a time of `time.time`, below a `current` one; as a parent for others."""
    if _tracer is None:
        return None
    from opentelemetry import trace

    context: Any = parent
    made = _tracer.start_span(name, context, attributes=_named(attributes), start_time=round(began * 1e9))
    made.end(round(ended * 1e9))
    return trace.set_span_in_context(made, context)


def current() -> object:
    """The context, for `record` in another thread; None where tracing is off."""
    if _tracer is None:
        return None
    from opentelemetry import context

    return context.get_current()


def traceparent() -> str:
    """Of the current span; empty where there is none."""
    if _tracer is None:
        return ""
    from opentelemetry import trace

    here = trace.get_current_span().get_span_context()
    if not here.is_valid:
        return ""
    return f"00-{here.trace_id:032x}-{here.span_id:016x}-{int(here.trace_flags):02x}"


def is_sampled(given: str) -> bool:
    return bool(given) and _span_context(given).trace_flags.sampled


def carried(work: Callable[Given, Made]) -> Callable[Given, Made]:
    """The same, to be called in another thread, below the span that is current here."""
    if _tracer is None:
        return work
    from opentelemetry import context

    here = context.get_current()

    def below(*given: Given.args, **named: Given.kwargs) -> Made:
        token = context.attach(here)
        try:
            return work(*given, **named)
        finally:
            context.detach(token)

    return below


def of_message(attributes: Mapping[str, str] | None) -> str:
    """The `traceparent` that came with a message; empty where there was none."""
    return next((found for name in MESSAGE_ATTRIBUTES if (found := (attributes or {}).get(name))), "")


def traced_call(call: Callable[..., Any], method: str, address: str) -> Callable[..., Any]:
    """A gRPC call with a span of its own, which the server is told of."""
    service, name = method.strip("/").split("/")
    named = {"rpc.system": "grpc", "rpc.service": service, "rpc.method": name, "server.address": address}

    def traced(request: Any, timeout: float) -> Any:
        with span(method.strip("/"), kind="CLIENT", **named):
            return call(request, timeout=timeout, metadata=((HEADER, traceparent()),))

    return traced


def _named(attributes: Mapping[str, Value]) -> dict[str, Value]:
    """Names of our own go below `pause`; keywords have no dots."""
    return {name if "." in name else f"pause.{name}": value for name, value in attributes.items()}


def _context(given: str) -> Any:
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator().extract({HEADER: given})


def _span_context(given: str) -> Any:
    from opentelemetry import trace

    return trace.get_current_span(_context(given)).get_span_context()
