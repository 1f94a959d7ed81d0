"""The same pipeline on Prism, Beam's portable runner: files once, and files as they appear."""

import gzip
import json
import random
import signal
import time

import pytest
from place import Place
from real_servers import running
from waiting import wait_until

from infra.local.prism import Prism
from pipelines import options, pipeline


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


def test_a_run_is_followed_for_longer_than_the_job_server_may_take_to_respond(place, flags):
    path = place.file(*companies(0, 3))
    run = place.start("--watch", str(path), "--watch_interval=0.5", "--job_server_timeout=1", *flags)
    try:
        wait_until(lambda: place.index.status().live == 3, run)
        time.sleep(3)
        assert run.poll() is None
    finally:
        run.send_signal(signal.SIGTERM)
        _, complained = run.communicate(timeout=60)
    assert run.returncode == 0, complained


def test_a_job_server_that_is_not_there_is_one_line(place):
    path = place.file(*companies(0, 3))
    run = place.start("--input", str(path), "--runner=PrismRunner", "--job_endpoint=127.0.0.1:9")
    _, told = run.communicate()
    assert run.returncode == 2 and "no job server answers there" in told and "Traceback" not in told


def test_a_watched_folder_may_hold_anything_and_what_changes_is_read_again(place, flags):
    """A half-copied file, and one whose ending tells nothing; then the first is whole, and another one changes."""
    untimed = [{"id": f"u{number}", "description": f"Makes {number}"} for number in range(20)]
    words = random.Random(1)
    copied = gzip.compress(
        b"".join(
            json.dumps(one | {"name": f"{words.getrandbits(256):x}"}).encode() + b"\n" for one in companies(0, 400)
        )
    )
    (place.directory / "notes.txt").write_text("not a company")
    (place.directory / "copied.jsonl.gz").write_bytes(copied[: len(copied) // 2])
    place.file(*untimed, name="changes.jsonl")
    run = place.start("--watch", str(place.directory / "*.*"), "--watch_interval=0.5", *flags)
    try:
        wait_until(lambda: len(place.dead()) >= 2 and place.index.status().live > 20, run)
        half = place.index.status().live - 20
        assert 0 < half < 400
        (place.directory / "copied.jsonl.gz").write_bytes(copied)
        wait_until(lambda: place.index.status().live == 420, run)
        place.file(*({**one, "description": "Changed"} for one in untimed), name="changes.jsonl")
        wait_until(lambda: place.index.get("u7").description == "Changed", run)
        wait_until(lambda: all(one.description == "Changed" for one in stored(place, untimed)), run)
    finally:
        run.send_signal(signal.SIGTERM)
        said, complained = run.communicate(timeout=60)
    assert run.returncode == 0, complained
    letters = {letter["source"].split(", as of")[0]: letter for letter in place.dead()}
    assert {letter["stage"] for letter in letters.values()} == {"read"}
    assert sorted(letters) == [str(place.directory / name) for name in ("copied.jsonl.gz", "notes.txt")]
    assert "most frequent reasons: file: cannot be read (2)" in said, said


def stored(place, records):
    return place.index.get_many(one["id"] for one in records).values()


def test_reasons_and_unknown_fields_are_told_by_whoever_ran_the_job(place, flags):
    path = place.file(*({**one, "ticker": "T"} for one in companies(0, 30)), {"id": "bad"}, b"{")
    summary = pipeline.run(options.parse(["--input", str(path), *place.flags, *flags]))
    assert summary.reasons == {"description: missing": 1, "record: not JSON": 1}
    assert summary.unknown == {"ticker": 30}
