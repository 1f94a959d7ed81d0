"""What takes long to make, made once for all processes of a test run."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from infra.local.processes import alone


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A folder that the first to ask for fills; the others wait for it, and must leave it as it is."""
    root = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent  # of all workers
    folder = root / name
    with alone(root / f"{name}.lock"):
        if not folder.exists():
            made = factory.mktemp(name)
            make(made)
            made.rename(folder)
    return folder
