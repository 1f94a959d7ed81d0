"""A step's work on a batch as a span, in the trace of a company that is in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from serving.tracing import spans

if TYPE_CHECKING:
    from pipelines.records import Company
    from pipelines.transforms.batch import Done, Task


def traced(work: Callable[[Any], Done], name: str) -> Callable[[Any], Done]:
    """A batch has companies of many traces, and a request to the endpoint or the index has one: that of the first
    company that is sampled; its span is linked to those of the others. So one trace id leads from that company's
    message to the bulk request. A batch of which no company has a trace begins one, which its tasks take along."""
    if not spans.is_on():
        return work

    def below(batch: Sequence[Company | Task]) -> Done:
        traces = list(dict.fromkeys(one.trace for one in batch if one.trace))
        sampled = [trace for trace in traces if spans.is_sampled(trace)]
        parent = next(iter(sampled or traces), None)
        with spans.span(name, parent=parent, links=sampled[1:], companies=len(batch)):
            done, here = work(batch), spans.traceparent()
            done.tasks = [task if task.trace else replace(task, trace=here) for task in done.tasks]
            return done

    return below
