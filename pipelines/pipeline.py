"""A run of the pipeline: all that must be true before it, the graph on its runner, and the sum of what became of it.

The names of the steps are what `--update` recognises a running job by: change none of them, nor of the DoFns' classes.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
from apache_beam.runners.runner import PipelineResult, PipelineState

from common.errors import CommandError
from pipelines import preflight
from pipelines.concurrency import direct_stream
from pipelines.errors import JobFailed
from pipelines.io.dead_letters import DEAD, DeadLetter, Replay, WriteDeadLetters
from pipelines.io.files import ReadFiles
from pipelines.io.pubsub import ReadMessages
from pipelines.io.watch import WatchFiles
from pipelines.metrics.exposition import exposed
from pipelines.metrics.summary import Summary, progress
from pipelines.options import BATCH_SIZE, DIRECT, IN_FLIGHT, WRITES, Options
from pipelines.records import Columns, Company, RawRecord
from pipelines.services import Services
from pipelines.transforms.all_stages import AllStages
from pipelines.transforms.batch import BatchCompanies, par_do
from pipelines.transforms.encode import EncodeTexts
from pipelines.transforms.parse import Parse
from pipelines.transforms.skip_unchanged import SkipUnchanged
from pipelines.transforms.write import WriteToIndex

SHARDS = 8  # of a stream on other machines
DRAIN_SECONDS = 30.0  # of an interrupted stream


@dataclass(frozen=True)
class EncodeConfig:
    """What the steps between the pipeline's ends need to know."""

    services: Services
    columns: Columns
    batch_size: int = BATCH_SIZE
    in_flight: int = IN_FLIGHT
    writes: int = WRITES
    max_wait: float | None = None  # seconds until a batch goes as it is; None batches within bundles, for files
    polled: bool = False  # for the direct runner's streams: it reads on while batches are worked on
    shards: int = 1  # of a stream: each fills batches of its own


class IndexCompanies(beam.PTransform[beam.PCollection[RawRecord], beam.PCollection[DeadLetter]]):
    """Records in, companies in the index, dead letters out."""

    def __init__(self, config: EncodeConfig):
        super().__init__()
        self._config = config

    def expand(self, records: beam.PCollection[RawRecord]) -> beam.PCollection[DeadLetter]:
        parsed = records | "Parse" >> par_do(Parse(self._config.columns))
        ends = (self._in_one_step if self._config.polled else self._in_steps)(parsed.good)
        letters: beam.PCollection[DeadLetter] = (parsed[DEAD], *ends) | "Dead" >> beam.Flatten()
        return letters

    def _in_steps(self, companies: beam.PCollection[Company]) -> list[beam.PCollection[DeadLetter]]:
        config, services = self._config, self._config.services
        batches = companies | "Batch" >> BatchCompanies(config.batch_size, config.max_wait, config.shards)
        tasks = batches | "SkipUnchanged" >> par_do(SkipUnchanged(services, 1))
        encoded = tasks.good | "Encode" >> EncodeTexts(services, config.in_flight)
        written = encoded.good | "Write" >> WriteToIndex(services, config.writes)
        return [tasks[DEAD], encoded[DEAD], written[DEAD]]

    def _in_one_step(self, companies: beam.PCollection[Company]) -> list[beam.PCollection[DeadLetter]]:
        config = self._config
        keyed = companies | "Key" >> beam.WithKeys(0).with_output_types(tuple[int, Company])
        step = AllStages(config.services, config.in_flight, size=config.batch_size, max_wait=config.max_wait or 0.0)
        return [(keyed | "AllStages" >> par_do(step))[DEAD]]


def run(options: Options) -> Summary | None:
    """What became of the records; None of a job that goes on, or begins, without us."""
    preflight.require_job_server(options)
    with exposed(options):
        services, index = preflight.services(options, preflight.input_bytes(options))
        with preflight.serving(services, options), preflight.loading(index, options), progress():
            return _finish(launch(build(options, services)), options)


def build(options: Options, services: Services) -> beam.Pipeline:
    settings = options.pipeline_options()
    polled = options.reads_messages and options.runner in DIRECT
    if polled:
        direct_stream.begin()
    pipeline = beam.Pipeline(runner=_runner(options), options=settings)
    config = EncodeConfig(
        services,
        options.columns,
        batch_size=options.batch_size,
        in_flight=options.in_flight,
        max_wait=options.max_wait if options.reads_messages else None,
        # The direct runner has one thread for all: batches of several shards would wait for each other.
        shards=1 if options.is_local else SHARDS,
        polled=polled,
    )
    records = pipeline | "Read" >> _source(options)
    if options.replay:
        records = records | "Replay" >> Replay()
    letters = records | "Index" >> IndexCompanies(config)
    letters | "DeadLetters" >> WriteDeadLetters(options.dead_letters)
    return pipeline


def launch(pipeline: beam.Pipeline) -> PipelineResult:
    try:
        return pipeline.run()
    except (RuntimeError, CommandError) as error:  # a worker's, or its traceback as text; the last line is the reason
        raise JobFailed(f"the job failed: {_reason(error)}") from error


def _source(options: Options) -> beam.PTransform[Any, beam.PCollection[RawRecord]]:
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
    if preflight.template_location(options) or (options.is_streaming and not options.is_local):
        return None
    try:
        state = result.wait_until_finish()
    except KeyboardInterrupt:
        if not options.is_streaming:
            raise
        return _interrupted(result)
    except (RuntimeError, CommandError) as error:
        raise JobFailed(f"the job failed: {_reason(error)}") from error
    if state != PipelineState.DONE:
        raise JobFailed(f"the job ended as {state}; the runner's log says why")
    return _balanced(Summary.of(result))


def _interrupted(result: PipelineResult) -> Summary:
    """A stream has no end but this one: what has been read is waited for.

    Counted here: a step's metrics stay those of its first bundle on the direct runner's stream (Beam 2.77).
    """
    deadline = time.monotonic() + DRAIN_SECONDS
    direct_stream.drain(DRAIN_SECONDS)
    while time.monotonic() < deadline and not Summary.of_process().adds_up:
        time.sleep(0.1)
    result.cancel()
    return _balanced(Summary.of_process())


def _balanced(summary: Summary) -> Summary:
    if not summary.adds_up:
        raise JobFailed(f"records are unaccounted for: {summary}")
    return summary


def _reason(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[-1].strip() if lines else "the runner gave no reason"
