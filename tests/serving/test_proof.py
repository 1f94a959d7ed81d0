"""A version whose arithmetic kills: the process that tries it out dies, and the server does not."""

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from commands import refusal
from embedded import EmbeddedServer
from waiting import wait_until

from model.errors import ExportError
from serving.client import EmbeddingClient
from serving.publish import main as publish
from serving.server.models import proof

FACTS = "assets.extra/pause.json"
# Python runs this when it starts: in the process that tries versions out, and in no other, the CPU "fails".
DIES = """
import os, signal, sys
if "serving.server.models.proof" in sys.orig_argv:
    {what}
"""


@pytest.fixture
def reduced(exports, tmp_path) -> Path:
    """By its own account in bfloat16, so that it is tried out first; it multiplies in float32 and loads on any CPU."""
    copy = Path(shutil.copytree(exports[1], tmp_path / "reduced"))
    facts = json.loads((copy / FACTS).read_text())
    (copy / FACTS).write_text(json.dumps(facts | {"precision": "bfloat16"}))
    return copy


def fail_in_child(monkeypatch, tmp_path: Path, what: str) -> None:
    (tmp_path / "python").mkdir()
    (tmp_path / "python" / "sitecustomize.py").write_text(DIES.format(what=what))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "python"))


def children(pid: int) -> list[int]:
    """Those that any thread of it started."""
    found: list[int] = []
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(FileNotFoundError):  # the thread has ended
            found += map(int, listed.read_text().split())
    return found


def test_a_server_outlives_a_version_that_kills_and_the_live_one_stays(exports, reduced, tmp_path, monkeypatch):
    fail_in_child(monkeypatch, tmp_path, "os.kill(os.getpid(), signal.SIGILL)")
    base = tmp_path / "pause"
    shutil.copytree(exports[0], base / "1")
    with EmbeddedServer(base, "--xla_cpu_compilation_enabled=false", rest=False) as server:
        reduced.rename(base / "2")
        said = server.wait_for(r"pause version 2 is not served \(attempt 1\): (.*)\n")[1]
        assert "died of SIGILL" in said and "bfloat16" in said and "ONEDNN_MAX_CPU_ISA" in said and "float32" in said
        with EmbeddingClient([server.address]) as client:
            fingerprint = json.loads((exports[0] / FACTS).read_text())["contract"]["fingerprint"]
            assert client.embed(["bank"])[1] == [fingerprint]
        assert server.process.poll() is None and server.stop() == 0


def test_a_process_that_tries_a_version_out_ends_with_its_server(exports, reduced, tmp_path):
    base = tmp_path / "pause"
    shutil.copytree(exports[0], base / "1")
    with EmbeddedServer(base, "--xla_cpu_compilation_enabled=false", rest=False) as server:
        reduced.rename(base / "2")
        wait_until(lambda: bool(children(server.process.pid)))
        [child] = children(server.process.pid)
        server.kill()
        wait_until(lambda: not Path(f"/proc/{child}").exists(), seconds=60)


def test_a_version_that_is_no_longer_wanted_is_tried_out_no_longer(reduced, monkeypatch, tmp_path):
    fail_in_child(monkeypatch, tmp_path, "signal.pause()")
    before = set(children(os.getpid()))  # servers that tests share
    looks = []

    def check() -> None:
        looks.append(set(children(os.getpid())) - before)
        if len(looks) == 3:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        proof.prove_apart(reduced, check=check)
    assert len(looks[2]) == 1 and not looks[2] & set(children(os.getpid()))


def test_a_good_version_is_proven_apart_and_a_faulty_one_says_its_fault(reduced):
    proof.prove(reduced)
    facts = json.loads((reduced / FACTS).read_text())
    facts["golden"][1]["embedding"].reverse()
    (reduced / FACTS).write_text(json.dumps(facts))
    with pytest.raises(ExportError, match=r"^the golden vectors are not reproduced: cosine .* on golden text 1"):
        proof.prove(reduced)


def test_what_hangs_is_killed_and_told(reduced, tmp_path, monkeypatch):
    fail_in_child(monkeypatch, tmp_path, "signal.setitimer(signal.ITIMER_REAL, 0.1); signal.pause()")
    with pytest.raises(ExportError, match=f"died of SIGALRM: it was not done after {proof.SECONDS} s"):
        proof.prove(reduced)


def test_float32_is_proven_without_another_process(exports, tmp_path, monkeypatch):
    fail_in_child(monkeypatch, tmp_path, "os.kill(os.getpid(), signal.SIGILL)")
    proof.prove(exports[0])


def test_a_version_that_kills_is_not_published(reduced, tmp_path, monkeypatch, capsys):
    fail_in_child(monkeypatch, tmp_path, "os.kill(os.getpid(), signal.SIGILL)")
    said = refusal(capsys, publish, "--from", reduced, "--to", tmp_path / "base")
    assert "must not be served: the process that tried it out (bfloat16) died of SIGILL" in said
    assert not (tmp_path / "base").exists()


def test_the_hook_of_these_tests_leaves_other_processes_alone(tmp_path, monkeypatch):
    fail_in_child(monkeypatch, tmp_path, "os.kill(os.getpid(), signal.SIGILL)")
    assert subprocess.run([sys.executable, "-c", ""]).returncode == 0
    dead = subprocess.run([sys.executable, "-m", "serving.server.models.proof", "--help"], capture_output=True)
    assert dead.returncode == -signal.SIGILL
