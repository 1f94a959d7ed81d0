"""An encoder in a process of its own that runs only when told to, so that rounds alternate and nothing overlaps.

Both ends of the conversation are here: the child is told by a JSON line how to encode the texts, and replies with the
seconds it took. Only the standard library and numpy are imported, which all environments of contestants have.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.peers.child import Child
from common.errors import InputError

Encode = Callable[[list[str], int], np.ndarray]  # texts and batch size -> vectors [n, d]


class ContestantError(InputError):
    """A contestant that cannot take part; the message names the file with its own words."""


class Contestant(Child):
    """The parent's end: started and loaded by the constructor, idle between two calls of `run`."""

    def __init__(self, command: Sequence[str], texts: Path, log: Path):
        self._command, self._vectors = command, log.with_suffix(".npy")
        # The model is on disk; asking a hub for news takes seconds.
        super().__init__([*command, str(texts), str(self._vectors)], log, {**os.environ, "HF_HUB_OFFLINE": "1"})

    def run(self, batch_size: int) -> float:
        """Seconds for all texts; the encoder may have batches of its own and ignore the size."""
        return self.ask({"batch_size": batch_size})["seconds"]

    def vectors(self) -> np.ndarray:
        """Of the run before, float32 [n, d]."""
        return np.load(self._vectors)

    def _ended(self) -> ContestantError:
        said = self._log.read_text(errors="replace").strip().splitlines() or ["nothing"]
        return ContestantError(f"`{' '.join(self._command)}` ended early: {said[-1]} ({self._log} has the rest)")


def take_part(load: Callable[[], Encode], texts: list[str], vectors: Path) -> None:
    """The child's end: loads, then encodes when told to; returns when the parent has closed its own end."""
    # Libraries print what they like, while loading most of all; only replies may go where the parent reads them.
    with os.fdopen(os.dup(sys.stdout.fileno()), "w") as replies:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        encode = load()
        print(json.dumps({"ready": True}), file=replies, flush=True)
        for line in sys.stdin:
            batch_size = json.loads(line)["batch_size"]
            start = time.perf_counter()
            found = encode(texts, batch_size)
            seconds = time.perf_counter() - start
            np.save(vectors, found)
            print(json.dumps({"seconds": seconds}), file=replies, flush=True)


def read_texts(path: str) -> list[str]:
    return json.loads(Path(path).read_text(encoding="utf-8"))
