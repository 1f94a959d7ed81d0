"""Waiting for what a process or a thread beside the test does."""

import subprocess
import time
from collections.abc import Callable

from common.errors import CommandError


def wait_until(true: Callable[[], bool], run: subprocess.Popen | None = None, seconds: float = 240.0) -> None:
    """Fails where it takes longer, or the process ends before. An index that is not there yet is waited for."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert run is None or run.poll() is None, run.communicate()
        try:
            if true():
                return
        except CommandError:
            pass
        time.sleep(0.05)
    raise AssertionError(f"not in {seconds:.0f} s")
