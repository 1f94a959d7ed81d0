"""What takes long to make, made once for all processes of a test run."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A folder that the first to ask for fills; the others wait for it, and must leave it as it is."""
    root = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent  # of all workers
    folder, unfinished = root / name, root / f"{name}.unfinished"
    with (root / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            unfinished.mkdir()
            make(unfinished)
            unfinished.rename(folder)
    return folder
