"""From a published message to a company that can be found: timed for each message, and told where one never is."""

import json
import subprocess
import sys

import pytest
from companies import DIMENSION, MODEL, company

from benchmarks import stream
from index.base import Spec
from index.open import open_index


@pytest.fixture
def index(tmp_path):
    return open_index(str(tmp_path / "index"), create=Spec(MODEL, DIMENSION))


@pytest.fixture
def job():
    """A process that runs as long as it is asked about."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as running:
        yield running
        running.kill()


def test_every_message_is_timed_from_its_publishing_to_its_finding(index, job):
    def publish(data):
        record = json.loads(data)
        index.write([company(record["id"], sector=record["sector"], tags=tuple(record["tags"]))])

    seconds = stream.follow(index, publish, ["Makes anvils"] * 30, rate=100.0, first=0, running=job)
    assert len(seconds) == 30 and 0 < min(seconds) <= max(seconds) < 5


def test_a_job_that_ended_is_told(index, job):
    job.kill()
    job.wait()
    with pytest.raises(stream.StreamError, match="3 messages were not found"):
        stream.follow(index, lambda data: None, ["Makes anvils"] * 3, rate=1000.0, first=0, running=job)


def test_messages_that_are_never_found_are_told(index, job, monkeypatch):
    monkeypatch.setattr(stream, "PATIENCE", 0.3)
    with pytest.raises(stream.StreamError, match="messages were not found"):
        stream.follow(index, lambda data: None, ["Makes anvils"], rate=100.0, first=0, running=job)


def test_an_index_that_is_never_made_is_told(tmp_path, job, monkeypatch):
    monkeypatch.setattr(stream, "PATIENCE", 0.3)
    with pytest.raises(stream.StreamError, match="made no index"):
        stream.opened(str(tmp_path / "none"), job)
