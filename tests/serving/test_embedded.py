import subprocess
import sys
import time
from pathlib import Path

import pytest

from serving.embedded import EmbeddedServer, ServerSilent

PROGRAM = """
import sys, time
from serving.embedded import EmbeddedServer
with EmbeddedServer("--model_base_path", sys.argv[1], "--xla_cpu_compilation_enabled=false") as server:
    print(server.process.pid, flush=True)
    time.sleep(600)
"""


def running(process: Path) -> bool:
    try:
        return b"serving.server" in (process / "cmdline").read_bytes()  # empty once it has ended, until it is reaped
    except OSError:
        return False


def test_the_server_ends_with_the_program_that_started_it_even_when_that_is_killed(base):
    program = subprocess.Popen([sys.executable, "-c", PROGRAM, str(base)], stdout=subprocess.PIPE, text=True)
    with program:
        server = Path("/proc") / program.stdout.readline().strip()
        assert running(server)
        program.kill()
    until = time.monotonic() + 60
    while running(server) and time.monotonic() < until:
        time.sleep(0.05)
    assert not running(server)


def test_a_server_that_cannot_start_says_why(tmp_path):
    with pytest.raises(ServerSilent, match="holds no version"):
        EmbeddedServer("--model_base_path", str(tmp_path))
