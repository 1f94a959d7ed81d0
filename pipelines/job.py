"""A run of the pipeline: all that must be true before it, the graph on its runner, and the sum of what became of it."""

from __future__ import annotations

import time
from typing import Any

import apache_beam as beam
from apache_beam.runners.runner import PipelineResult, PipelineState

from model.errors import InputError
from pipelines import ready
from pipelines.arrival import Arrival
from pipelines.errors import JobFailed
from pipelines.graph import IndexCompanies, Work
from pipelines.letters import WriteDeadLetters
from pipelines.options import DIRECT, Options
from pipelines.progress import shown
from pipelines.services import Services
from pipelines.sources import ReadFiles, ReadMessages, Replay, WatchFiles
from pipelines.tally import Summary, here

SHARDS = 8  # of a stream on other machines
DRAIN_SECONDS = 30.0  # of an interrupted stream


def run(options: Options) -> Summary | None:
    """What became of the records; None of a stream that goes on without us."""
    size = ready.input_bytes(options.files) if options.files else 0
    services, index = ready.services(options, size)
    with ready.serving(services, options), ready.loading(index, options), shown():
        return _finish(launch(build(options, services)), options)


def build(options: Options, services: Services) -> beam.Pipeline:
    settings = options.pipeline_options()
    pipeline = beam.Pipeline(runner=_runner(options), options=settings)
    work = Work(
        services,
        options.columns,
        started=time.time_ns() // 1000,
        batch_size=options.batch_size,
        in_flight=options.in_flight,
        max_wait=options.max_wait if options.reads_messages else None,
        # The direct runner has one thread for all: batches of several shards would wait for each other.
        shards=1 if options.is_local else SHARDS,
        polled=options.reads_messages and options.runner in DIRECT,
    )
    arrivals = pipeline | "Read" >> _source(options)
    if options.replay:
        arrivals = arrivals | "Replay" >> Replay()
    letters = arrivals | "Index" >> IndexCompanies(work)
    letters | "DeadLetters" >> WriteDeadLetters(options.dead_letters)
    return pipeline


def launch(pipeline: beam.Pipeline) -> PipelineResult:
    try:
        return pipeline.run()
    except (RuntimeError, InputError) as error:  # a worker's, or its traceback as text; the last line is the reason
        raise JobFailed(f"the job failed: {_reason(error)}") from error


def _source(options: Options) -> beam.PTransform[Any, beam.PCollection[Arrival]]:
    if options.reads_messages:
        subscription = options.replay if options.replays_messages else options.subscription
        return ReadMessages(subscription, options.topic)
    if options.watch:
        return WatchFiles(options.watch, options.watch_interval, options.columns)
    return ReadFiles(str(options.files), options.columns)


def _runner(options: Options) -> Any:
    """Beam's DirectRunner first tries to fetch and start another program, Prism; whoever wants that one names it."""
    if options.runner not in DIRECT:
        return None
    if options.is_streaming:
        from apache_beam.runners.direct.direct_runner import BundleBasedDirectRunner

        return BundleBasedDirectRunner()
    from apache_beam.runners.portability.fn_api_runner import FnApiRunner

    return FnApiRunner()


def _finish(result: PipelineResult, options: Options) -> Summary | None:
    if options.is_streaming and not options.is_local:
        return None
    try:
        state = result.wait_until_finish()
    except KeyboardInterrupt:
        if not options.is_streaming:
            raise
        return _interrupted(result)
    except (RuntimeError, InputError) as error:
        raise JobFailed(f"the job failed: {_reason(error)}") from error
    if state != PipelineState.DONE:
        raise JobFailed(f"the job ended as {state}; the runner's log says why")
    return _balanced(Summary.of(result))


def _interrupted(result: PipelineResult) -> Summary:
    """A stream has no end but this one: what has been read is waited for, unless more and more comes in.

    Counted here: a step's metrics stay those of its first bundle on the direct runner's stream (Beam 2.77).
    """
    deadline = time.monotonic() + DRAIN_SECONDS
    while time.monotonic() < deadline and not Summary(here()).adds_up:
        time.sleep(0.1)
    result.cancel()
    return _balanced(Summary(here()))


def _balanced(summary: Summary) -> Summary:
    if not summary.adds_up:
        raise JobFailed(f"records are unaccounted for: {summary}")
    return summary


def _reason(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[-1].strip() if lines else "the runner gave no reason"
