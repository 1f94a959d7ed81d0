"""One command, run to its end: its seconds, by its own word and by the clock, and its peak memory."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.contestant import ContestantError

# As `pipelines.encode` ends: Python's start and imports are not in it, all from the first look at the input on is.
SECONDS = re.compile(r"; (?P<seconds>\d+\.\d+) s; index ")


@dataclass(frozen=True)
class Run:
    """What a finished command came to."""

    said: str  # the line that has the seconds
    seconds: float
    wall: float  # seconds from the start of the process to its end
    peak: float  # MB


def run(command: Sequence[str], log: Path, expected: str) -> Run:
    """`expected` must be in what it says in the end; where it goes wrong, the error has its last words."""
    log.parent.mkdir(parents=True, exist_ok=True)
    starter = [sys.executable, "-m", "benchmarks.targets.starter", *command]
    with log.open("w") as errors:
        offline = {**os.environ, "HF_HUB_OFFLINE": "1"}  # models are on disk
        child = subprocess.run(starter, stdout=subprocess.PIPE, stderr=errors, text=True, env=offline)
    *said, figures = child.stdout.splitlines() or [""]
    measured = json.loads(figures) if child.returncode == 0 else {"code": child.returncode}
    if measured["code"]:
        words = log.read_text(errors="replace").strip().splitlines() or ["nothing"]
        raise ContestantError(f"`{' '.join(command)}` ended with {measured['code']}: {words[-1]} ({log} has the rest)")
    found = next((match for line in said if (match := SECONDS.search(line))), None)
    if found is None or expected not in found.string:
        raise ContestantError(f"`{' '.join(command)}` should say {expected!r}, but says {' '.join(said)!r}")
    return Run(found.string, float(found["seconds"]), measured["wall"], measured["peak"])
