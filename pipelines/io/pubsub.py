"""Records of Pub/Sub messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import apache_beam as beam

from pipelines.records import RawRecord
from serving.tracing import spans
from serving.tracing.start import settings, start_worker


class ReadMessages(beam.PTransform[Any, beam.PCollection[RawRecord]]):
    """One record a message; its publish time is its version unless it names one."""

    def __init__(self, subscription: str | None = None, topic: str | None = None):
        super().__init__()
        self._subscription, self._topic = subscription, topic

    def expand(self, begin: Any) -> beam.PCollection[RawRecord]:
        from apache_beam.io.gcp.pubsub import ReadFromPubSub

        messages = ReadFromPubSub(topic=self._topic, subscription=self._subscription, with_attributes=True)
        name = str(self._subscription or self._topic)
        found: beam.PCollection[RawRecord] = (
            begin | "Messages" >> messages | "Arrive" >> beam.ParDo(_ToRecord(name, settings()))
        )
        return found


class _ToRecord(beam.DoFn):
    def __init__(self, name: str, tracing: Mapping[str, str]):
        """`tracing`: environment variables, for the worker."""
        self._name, self._tracing = name, tracing

    def setup(self) -> None:
        start_worker(self._tracing)

    def process(self, element: Any, timestamp: Any = beam.DoFn.TimestampParam) -> Iterator[RawRecord]:
        published = element.publish_time
        # A runner that hands on no publish time has it as the element's own.
        at = timestamp.micros if published is None else round(published.timestamp() * 1e6)
        trace = _received(element) if spans.is_on() else ""
        yield RawRecord(element.data or b"", f"{self._name}, message {element.message_id}", at, trace=trace)


def _received(message: Any) -> str:
    """The trace of whoever published it goes on, or one begins."""
    named = {"messaging.system": "gcp_pubsub", "messaging.message.id": str(message.message_id)}
    parent = spans.of_message(message.attributes)
    with spans.span("receive", parent=parent, kind="CONSUMER", **named):
        return spans.traceparent()
