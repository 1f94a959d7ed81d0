"""Real servers for tests: where this machine cannot run them a test is skipped, but never in CI."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from infra.local.processes import Process, Unavailable


@contextmanager
def running(start: Callable[[], Process]) -> Iterator[Process]:
    try:
        server = start()
    except Unavailable as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))
    with server:
        yield server
