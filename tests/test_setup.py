"""The set-up of the tests themselves: no process that dies and no test that hangs can hold up a run, or go unnamed."""

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Long after the run must have ended.
LONG = "import time\n\ndef test_takes_long():\n    time.sleep(500)\n"
DIES = """
import os, signal

def test_lives(): pass

def test_dies(): os.kill(os.getpid(), signal.SIGILL)

def test_comes_after(): pass
"""
HANGS = """
import time

def test_hangs(): time.sleep(500)

def test_comes_after(): pass
"""
HANGS_IN_C = """
import signal, time

def test_hangs():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})  # as a call into C does until it returns
    time.sleep(500)
"""


def run(folder, files, *flags):
    """A run of pytest over files, under the project's settings: its exit code, what it printed, and its seconds."""
    (folder / "conftest.py").write_text("from dead_workers import pytest_runtest_logreport\n")
    for name, content in files.items():
        (folder / name).write_text(content)
    settings = ("-c", str(ROOT / "pyproject.toml"), "--rootdir", str(folder), "-o", f"pythonpath={ROOT / 'tests'}")
    plugins = ("-p", "xdist", "-p", "pytest_timeout")  # the others, seconds to import, play no part in it
    outside = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, *settings, *flags, str(folder)],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**outside, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        timeout=200,
    )
    return done.returncode, done.stdout + done.stderr, time.monotonic() - start


def test_a_process_that_dies_ends_the_run_with_the_name_of_its_test(tmp_path):
    code, told, seconds = run(tmp_path, {"test_a.py": DIES, "test_b.py": LONG, "test_c.py": LONG})
    assert code == 1
    assert "FAILED test_a.py::test_dies" in told and "crashed while running" in told
    assert told.count("crashed while running 'test_a.py::test_dies'") < 5  # it is not tried again and again
    assert seconds < 60


def test_all_processes_may_die(tmp_path):
    code, told, seconds = run(tmp_path, {"test_a.py": DIES, "test_b.py": DIES, "test_c.py": LONG})
    assert code == 1 and "::test_dies" in told
    assert seconds < 60


def test_a_test_that_hangs_fails_by_name_and_the_others_go_on(tmp_path):
    code, told, seconds = run(tmp_path, {"test_a.py": HANGS}, "-o", "timeout=3")
    assert code == 1
    assert "FAILED test_a.py::test_hangs" in told and "Timeout" in told
    assert "1 failed, 1 passed" in told
    assert seconds < 60


def test_a_test_that_hangs_in_c_is_ended_and_named(tmp_path):
    limits = ("-o", "timeout=3", "-o", "faulthandler_timeout=6")
    code, told, seconds = run(tmp_path, {"test_a.py": HANGS_IN_C}, *limits)
    assert code == 1
    assert "FAILED test_a.py::test_hangs" in told
    assert "in test_hangs" in told  # where it hung
    assert seconds < 60


def test_a_hang_without_xdist_is_ended_too(tmp_path):
    limits = ("-o", "timeout=3", "-o", "faulthandler_timeout=6", "-n0")
    code, told, seconds = run(tmp_path, {"test_a.py": HANGS_IN_C}, *limits)
    assert code != 0 and "in test_hangs" in told
    assert seconds < 60
