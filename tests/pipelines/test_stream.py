"""Messages out of order, twice, and deletes among them: batches gather in the runner's state, newest wins."""

import json
import os
import random

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.direct.direct_runner import BundleBasedDirectRunner
from apache_beam.testing.test_stream import TestStream as Stream
from companies import DIMENSION, MODEL
from place import Place

from index.base import Spec
from index.open import open_index
from pipelines.io.dead_letters import WriteDeadLetters
from pipelines.metrics.counters import here
from pipelines.metrics.summary import Summary
from pipelines.pipeline import EncodeConfig, IndexCompanies
from pipelines.records import SAME_NAMES, RawRecord
from pipelines.services import Services

NOW = 1_700_000_000_000_000


@pytest.fixture
def work(tmp_path, encoder):
    url = str(tmp_path / "index")
    open_index(url, create=Spec(MODEL, DIMENSION))
    services = Services((encoder.address,), url, encoder.contract)
    return EncodeConfig(services, SAME_NAMES, batch_size=5, max_wait=1.0)


def message(id, version, **fields):
    record = {"id": id, "description": f"Makes {id} in {version}", **fields}
    return RawRecord(json.dumps(record).encode(), f"message {id} {version}", NOW + version)


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
    stream = Stream().add_elements([message("a", 1), RawRecord(b"{", "message b", NOW), message("c", 1)])
    counts = consume(stream.advance_watermark_to_infinity(), work, tmp_path / "letters")
    assert counts == {"bad": 1, "encoded": 2, "indexed": 2, "read": 3}
    (letters,) = (tmp_path / "letters").glob("*.jsonl")
    assert json.loads(letters.read_text())["source"] == "message b, as of 2023-11-14T22:13:20Z"


def test_a_message_published_after_a_dump_was_written_wins_whichever_is_read_first(work, tmp_path, encoder):
    place = Place(tmp_path, encoder.address, work.services.index_url)
    dump = place.file({"id": "a", "description": "As of the dump"})
    os.utime(dump, ns=(0, (NOW + 1) * 1000))
    assert place.run(dump) == {"encoded": 1, "indexed": 1, "read": 1}
    late = Stream().add_elements([message("a", 2)]).advance_watermark_to_infinity()
    assert consume(late, work, tmp_path / "letters") == {"encoded": 1, "indexed": 1, "read": 1}
    assert place.run(dump) == {"read": 1, "stale": 1}
    assert open_index(work.services.index_url).get("a").description == "Makes a in 2"
