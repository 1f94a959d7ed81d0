"""Messages out of order, twice, and deletes among them: batches gather in the runner's state, newest wins."""

import json
import random

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.direct.direct_runner import BundleBasedDirectRunner
from apache_beam.testing.test_stream import TestStream as Stream
from companies import DIMENSION, MODEL

from index.base import Spec
from index.open import open_index
from pipelines.arrival import Arrival
from pipelines.company import SAME_NAMES
from pipelines.graph import IndexCompanies, Work
from pipelines.letters import WriteDeadLetters
from pipelines.services import Services
from pipelines.tally import Summary, here

NOW = 1_700_000_000_000_000


@pytest.fixture
def work(tmp_path, encoder):
    url = str(tmp_path / "index")
    open_index(url, create=Spec(MODEL, DIMENSION))
    services = Services((encoder.address,), url, encoder.contract)
    return Work(services, SAME_NAMES, started=NOW, batch_size=5, max_wait=1.0)


def message(id, version, **fields):
    record = {"id": id, "description": f"Makes {id} in {version}", **fields}
    return Arrival(json.dumps(record).encode(), f"message {id} {version}", NOW + version)


def consume(stream, work, letters) -> dict[str, int]:
    pipeline = beam.Pipeline(BundleBasedDirectRunner(), PipelineOptions(["--streaming"]))
    dead = pipeline | stream | "Index" >> IndexCompanies(work)
    dead | "DeadLetters" >> WriteDeadLetters(str(letters))
    before = here()
    pipeline.run().wait_until_finish()
    counts = {name: number - before.get(name, 0) for name, number in sorted(here().items())}
    assert Summary(counts).adds_up, counts
    return {name: number for name, number in counts.items() if number}


def test_a_stream_ends_in_the_newest_state(work, tmp_path):
    messages = [message(f"c{i}", version) for i in range(12) for version in range(3)]
    messages += [message(f"c{i}", 3, deleted=True) for i in range(4)]
    messages += messages[:10]
    random.Random(2).shuffle(messages)
    stream = Stream()
    for start in range(0, len(messages), 7):
        stream = stream.add_elements(messages[start : start + 7]).advance_processing_time(0.3)
    counts = consume(stream.advance_watermark_to_infinity(), work, tmp_path / "letters")
    assert counts["read"] == len(messages) == 50
    index = open_index(work.services.index_url)
    found = index.get_many(f"c{i}" for i in range(12))
    assert {id: one.version for id, one in found.items()} == {f"c{i}": NOW + 2 for i in range(4, 12)}
    assert index.status().tombstones == 4


def test_a_bad_message_is_a_dead_letter_and_the_rest_goes_on(work, tmp_path):
    stream = Stream().add_elements([message("a", 1), Arrival(b"{", "message b", NOW), message("c", 1)])
    counts = consume(stream.advance_watermark_to_infinity(), work, tmp_path / "letters")
    assert counts == {"bad": 1, "encoded": 2, "indexed": 2, "read": 3}
    (letters,) = (tmp_path / "letters").glob("*.jsonl")
    assert json.loads(letters.read_text())["source"] == "message b"
