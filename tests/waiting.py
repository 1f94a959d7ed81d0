"""Waiting for what a process beside the test does."""

import subprocess
import time
from collections.abc import Callable

from model.errors import InputError


def wait_until(true: Callable[[], bool], run: subprocess.Popen, seconds: float = 240.0) -> None:
    """Fails where the process ends before, or takes longer. An index that is not there yet is waited for."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert run.poll() is None, run.communicate()
        try:
            if true():
                return
        except InputError:
            pass
        time.sleep(0.2)
    raise AssertionError(f"not in {seconds:.0f} s")
