"""Whatever comes over the wire, the service answers, lives, and does not grow."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.hostile.memory import resident_bytes
from benchmarks.hostile.search import attack
from benchmarks.hostile.search_requests import KINDS, hostile_requests

ROOT = Path(__file__).parents[2]


@pytest.fixture
def service(index, encoder):
    """The command itself, in a process of its own: its pid and port."""
    flags = ["--index", index.url, "--serving", encoder.address, "--port", "0", "--rate", "0"]
    command = [sys.executable, "-m", "search", *flags]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            yield process.pid, int(re.match(r"http://127\.0\.0\.1:(\d+) ", process.stdout.readline())[1])
            assert process.poll() is None
        finally:
            process.send_signal(signal.SIGTERM)


def test_a_seed_makes_the_same_requests():
    assert list(hostile_requests(7, 50)) == list(hostile_requests(7, 50))
    assert list(hostile_requests(7, 50)) != list(hostile_requests(8, 50))


def test_hundreds_of_hostile_requests_are_answered_without_a_fault(service):
    pid, port = service
    first = attack(port, seed=1, count=400)
    before = resident_bytes(pid)
    second = attack(port, seed=2, count=400)
    assert first.faults + second.faults == []
    assert len(first.kinds) == len(KINDS)
    assert {200, 400, 404, 405, 413, 421, 422, 431} <= first.statuses.keys() | second.statuses.keys()
    assert resident_bytes(pid) - before < 100 << 20


def test_with_the_endpoint_away_only_that_is_named(service, encoder):
    encoder.stop()
    report = attack(service[1], seed=3, count=100, parts_away=True)
    assert report.faults == []
    assert report.statuses[503]
