"""Real servers and programs for tests: where this machine cannot run them a test is skipped, but never in CI."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest

from infra.local.processes import Process, Unavailable

Found = TypeVar("Found")


def available(find: Callable[[], Found]) -> Found:
    try:
        return find()
    except Unavailable as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))


@contextmanager
def running(start: Callable[[], Process]) -> Iterator[Process]:
    with available(start) as server:
        yield server
