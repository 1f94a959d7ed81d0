"""The same pipeline on Prism, Beam's portable runner: files once, and files as they appear."""

import signal

import pytest
from place import Place
from real_servers import running
from waiting import wait_until

from infra.local.prism import Prism


@pytest.fixture(scope="module")
def flags():
    with running(Prism) as runner:
        yield ["--runner=PrismRunner", f"--job_endpoint={runner.address}"]


@pytest.fixture
def place(server, tmp_path):
    return Place(tmp_path, server.address)


def companies(first: int, last: int) -> list[dict]:
    return [
        {"id": f"c{number}", "description": f"Makes {number}", "updated_at": "2024-05-01T12:00:00Z"}
        for number in range(first, last)
    ]


def test_files_are_read_once_and_a_second_run_encodes_nothing(place, flags):
    path = place.file(*companies(0, 2_000), b"{")
    assert place.run(path, *flags) == {"bad": 1, "encoded": 2_000, "indexed": 2_000, "read": 2_001}
    assert place.index.status().live == 2_000 and len(place.dead()) == 1
    assert place.run(path, *flags) == {"bad": 1, "read": 2_001, "unchanged": 2_000}


def test_files_are_read_as_they_appear_until_the_run_is_stopped(place, flags):
    place.file(*companies(0, 100), name="first.jsonl")
    run = place.start("--watch", str(place.directory / "*.jsonl"), "--watch_interval=0.5", *flags)
    try:
        wait_until(lambda: place.index.status().live == 100, run)
        place.file(*companies(50, 150), name="second.jsonl")
        wait_until(lambda: place.index.status().live == 150, run)
    finally:
        run.send_signal(signal.SIGTERM)
        said, complained = run.communicate(timeout=60)
    assert (run.returncode, said.split(";")[0]) == (0, "200 read: 50 unchanged, 150 indexed"), complained
