"""Prism runs what the DirectRunner does, and what it does not: files that appear while the pipeline runs."""

import queue
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.io.fileio import MatchContinuously
from apache_beam.metrics import Metrics, MetricsFilter
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.runner import PipelineState
from real_servers import running

from infra.local.prism import Prism

SEEN: queue.Queue[str] = queue.Queue()  # LOOPBACK workers are threads of this process


@pytest.fixture(scope="module")
def flags() -> list[str]:
    with running(Prism) as server:
        yield ["--runner=PrismRunner", f"--job_endpoint={server.address}", "--environment_type=LOOPBACK"]


def see(element: str) -> None:
    Metrics.counter("tests", "seen").inc()
    SEEN.put(element)


def seen_by_metrics(result) -> int:
    (counter,) = result.metrics().query(MetricsFilter().with_name("seen"))["counters"]
    return counter.committed


def test_a_batch_pipeline_ends_with_its_elements_counted(flags):
    with beam.Pipeline(options=PipelineOptions(flags)) as pipeline:
        numbers = pipeline | beam.Create(range(100)) | beam.Reshuffle()
        numbers | beam.Map(lambda number: str(number % 7)) | beam.Distinct() | beam.Map(see)
    assert sorted(SEEN.get_nowait() for _ in range(7)) == list("0123456") and SEEN.empty()
    assert seen_by_metrics(pipeline.result) == 7


def test_a_file_that_appears_later_is_seen_and_the_pipeline_can_be_cancelled(flags, tmp_path):
    def write(name: str) -> Path:
        (tmp_path / name).write_text(name)
        return tmp_path / name

    pipeline = beam.Pipeline(options=PipelineOptions([*flags, "--streaming"]))
    watched = pipeline | MatchContinuously(f"{tmp_path}/*.txt", interval=0.2)
    watched | beam.Map(lambda file: file.path) | beam.Map(see)
    first = write("first.txt")
    result = pipeline.run()
    assert SEEN.get(timeout=30) == str(first)
    write("other.csv")
    later = write("later.txt")
    assert SEEN.get(timeout=30) == str(later)
    result.cancel()
    with pytest.raises(RuntimeError, match="CANCELLED"):
        result.wait_until_finish(duration=30_000)
    assert result.state == PipelineState.CANCELLED and SEEN.empty()
    assert seen_by_metrics(result) in (1, 2)  # what was cut off is not counted
