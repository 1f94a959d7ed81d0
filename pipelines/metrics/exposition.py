"""The figures of this process as a page for Prometheus, where flags ask for one.

They are the job's own where all its workers are threads of this process: on the DirectRunner and, with LOOPBACK, on
Prism; `Options` refuses the flag for others. Dataflow shows Beam's counters of the same names in Cloud Monitoring.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import get_args

from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from common.errors import InputError
from pipelines.concurrency.direct_stream import held_items
from pipelines.metrics.counters import NAMESPACE, STAGES, counted, of_streams, oldest, registry, watch
from pipelines.metrics.summary import BESIDE, ENDS
from pipelines.options import Options
from pipelines.records import Stage

PREFIX = "pause_pipeline"


@contextmanager
def exposed(options: Options) -> Iterator[None]:
    """From before the first look at the services until the end of the run: also of one that waits for them."""
    if not options.metrics_port:
        yield
        return
    host, port = options.metrics_host, options.metrics_port
    try:
        server, thread = start_http_server(port, host, page(options))
    except OSError as error:
        why = f"--metrics_port {port} cannot be listened on at --metrics_host {host}: {error.strerror}"
        raise InputError(why) from error
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def page(options: Options) -> CollectorRegistry:
    found = CollectorRegistry()
    streams = [of_streams, _Backlog()] if options.source in ("messages", "watch") else []
    for part in (registry, *streams, _Counts(), _Run(options)):
        found.register(part)
    ProcessCollector(registry=found)
    return found


class _Counts(Collector):
    """Read when asked for: whoever counts pays nothing for it."""

    def collect(self) -> Iterator[Metric]:
        counts, stages = counted(NAMESPACE, STAGES)
        yield CounterMetricFamily(f"{PREFIX}_read", "Records read.", counts["read"])
        ends = CounterMetricFamily(f"{PREFIX}_records", "Records by how they ended.", labels=["end"])
        for end in ENDS:
            ends.add_metric([end], counts[end])
        yield ends
        for name, about in zip(BESIDE, ("Texts encoded.", "Fields that nobody reads."), strict=True):
            yield CounterMetricFamily(f"{PREFIX}_{name}", about, counts[name])
        letters = CounterMetricFamily(f"{PREFIX}_dead_letters", "Dead letters by stage.", labels=["stage"])
        for stage in get_args(Stage):
            letters.add_metric([stage], stages[stage])
        yield letters


class _Run(Collector):
    def __init__(self, options: Options):
        self._options = options

    def collect(self) -> Iterator[Metric]:
        options = self._options
        told = {"runner": options.runner, "source": options.source}
        yield InfoMetricFamily(PREFIX, "What this run was told.", told)
        size = "Companies that a batch has room for."
        yield GaugeMetricFamily(f"{PREFIX}_batch_size", size, options.batch_size)
        if watch.model:
            model = InfoMetricFamily(f"{PREFIX}_model", "The model that the last batch was for.")
            model.add_metric([], {"fingerprint": watch.model})
            yield model
        last = "When a record last came to a good end; 0 before the first."
        yield GaugeMetricFamily(f"{PREFIX}_last_success_timestamp_seconds", last, watch.last_success)
        # A stream on the direct runner keeps what it has read; elsewhere the runner does, but for batches at work.
        held = held_items()
        batches = [(len(held), oldest(held))] if held else watch.under_way()
        number = sum(records for records, _ in batches)
        yield GaugeMetricFamily(f"{PREFIX}_under_way_records", "Records read and not ended, as far as known.", number)


class _Backlog(Collector):
    """Of a stream. What nobody has read yet only its subscription knows; a record that was just read had waited as
    long as those behind it will have, and one that is held up here ages on."""

    def collect(self) -> Iterator[Metric]:
        now = time.time()
        times = [oldest(held_items()), *(since for _, since in watch.under_way())]
        held = max((now - since / 1e6 for since in times if since is not None), default=0.0)
        about = "Age of the oldest record that is worked on."
        yield GaugeMetricFamily(f"{PREFIX}_oldest_under_way_seconds", about, max(0.0, held))
        about = "Age of the oldest record that is not in the index yet, as far as this process can know."
        yield GaugeMetricFamily(f"{PREFIX}_backlog_age_seconds", about, max(0.0, held, watch.waited(now)))
