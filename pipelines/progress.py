"""How far a run on this machine is, on the terminal: one line, renewed, and none where nobody looks."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from pipelines.tally import here

EVERY, EVERY_IN_A_LOG = 0.5, 10.0  # seconds


def line(before: dict[str, int], now: dict[str, int], seconds: float) -> str:
    done = {name: number - before.get(name, 0) for name, number in now.items()}
    words = [
        f"{done[name]:,} {name}"
        for name in ("read", "encoded", "indexed", "unchanged", "bad", "dead")
        if done.get(name)
    ]
    return f"{', '.join(words) or 'nothing read yet'}, {done.get('read', 0) / max(seconds, 1e-9):,.0f}/s"


@contextmanager
def shown(stream: TextIO | None = None) -> Iterator[None]:
    stream = stream or sys.stderr
    terminal = stream.isatty()
    ended, before, began = threading.Event(), here(), time.monotonic()

    def show() -> None:
        while not ended.wait(EVERY if terminal else EVERY_IN_A_LOG):
            text = line(before, here(), time.monotonic() - began)
            stream.write(f"\r\x1b[K{text}" if terminal else f"{text}\n")
            stream.flush()
        if terminal:
            stream.write("\r\x1b[K")

    thread = threading.Thread(target=show, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
