"""A check: a validator, or a comparison with the code, that says what is wrong with the files of a deployment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Check:
    """`run` takes the project's root, so that a test can hand it a copy with a mistake, and returns a line for each
    finding: the file, and what is wrong there."""

    name: str
    run: Callable[[Path], list[str]]
    slow: bool = False  # builds or starts something for minutes; left out unless asked for
