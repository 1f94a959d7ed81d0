"""Rollbacks under constant load, as `python -m benchmarks rollback` measures them, and the command that waits."""

import json
import shutil
from pathlib import Path

import pytest
from commands import answer, refusal
from embedded import EmbeddedServer
from version_folders import write_version

from benchmarks.rollback import Reply, Withdrawal, measure, verdict
from common.ports import free_port
from serving.client import EmbeddingClient
from serving.publish import main

UNCOMPILED = "--xla_cpu_compilation_enabled=false"


def test_rollbacks_at_random_moments_of_loading_fail_nothing_and_nothing_withdrawn_answers(exports, tmp_path):
    flags = (UNCOMPILED, "--file_system_poll_wait_seconds", "0.1")
    [figures] = measure(exports[0], exports[1], tmp_path / "pause", 5, *flags).values()
    assert figures["met"] == "yes", figures
    assert (
        figures["failed"] == figures["answered by a version after its withdrawal"] == figures["alarms in the log"] == 0
    )
    assert figures["withdrawn while loading"] + figures["withdrawn when live"] == 5  # the premises
    assert figures["requests"] > 20


@pytest.mark.parametrize(
    ("was_live", "answers", "failures", "log", "fault"),
    [
        (True, [Reply(1.0, 0.1, 2, "good")], ["UNAVAILABLE: gone"], "", "failed"),
        (True, [Reply(9.1, 0.1, 3, "bad")], [], "", "answered by a version after its withdrawal"),
        (False, [Reply(8.0, 0.1, 3, "bad")], [], "", "answered by a version that was withdrawn while loading"),
        (True, [Reply(1.0, 0.1, 2, "bad")], [], "", "answered under a fingerprint of another version"),
        (True, [Reply(1.0, 0.1, 2, "good")], [], "2026-01-01 E pause version 3 is not served", "alarms in the log"),
    ],
)
def test_each_fault_is_counted(was_live, answers, failures, log, fault):
    figures = verdict(answers, failures, [Withdrawal(3, at=8.0, gone=9.0, was_live=was_live)], ("good", "bad"), log)
    assert figures[fault] == 1 and figures["met"] == "no"


def test_a_rollback_that_waits_for_a_server_is_over_when_the_former_version_answers(exports, tmp_path, capsys):
    for number in (1, 2):
        shutil.copytree(exports[number - 1], tmp_path / "pause" / str(number))
    former = json.loads((exports[0] / "assets.extra/pause.json").read_text())["contract"]["fingerprint"]
    with (
        EmbeddedServer(tmp_path / "pause", UNCOMPILED, rest=False) as server,
        EmbeddingClient([server.address]) as client,
    ):
        assert client.embed(["bank"])[1] != [former]
        code, said, _ = answer(capsys, main, "--rollback", "--to", tmp_path / "pause", "--serving", server.address)
        assert (code, said) == (0, f"withdrew 2; the newest version is now {tmp_path}/pause/1\n")
        assert client.embed(["bank"])[1] == [former]


def test_a_server_that_cannot_be_asked_is_one_line_after_the_version_is_withdrawn(tmp_path, capsys):
    for number in (1, 2):
        write_version(tmp_path / "pause" / str(number))
    address = f"127.0.0.1:{free_port()}"
    code, said, told = answer(capsys, main, "--rollback", "--to", tmp_path / "pause", "--serving", address)
    assert code == 2 and said.startswith("withdrew 2") and not (tmp_path / "pause" / "2").exists()
    assert told.startswith(f"error: {address} does not tell what it serves: UNAVAILABLE") and told.count("\n") == 1


def test_servers_are_waited_for_after_a_rollback_only(tmp_path: Path, capsys):
    flags = ("--from", tmp_path, "--to", tmp_path, "--serving", "localhost:8500")
    assert "--serving goes with --rollback" in refusal(capsys, main, *flags)
