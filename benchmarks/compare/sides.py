"""The two sides of a comparison: a tree each, checked out where it is another commit's, and a process in it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.measures.data import BUILD
from benchmarks.peers.child import Child
from common.errors import InputError

FOLDER = BUILD / "compare"
SIDE = Path(__file__).with_name("side.py")
BEFORE, AFTER = "before", "after"


class CompareError(InputError):
    """A side that cannot be measured; the message names the file with its own words."""


def checked_out(revision: str) -> Path:
    """A work tree of its own, kept for the next time."""
    found = subprocess.run(["git", "rev-parse", f"{revision}^{{commit}}"], capture_output=True, text=True)
    if found.returncode:
        raise CompareError(f"--before {revision} is no commit of this repository")
    tree = (FOLDER / found.stdout.strip()[:12]).resolve()
    if not tree.exists():
        words = ["git", "worktree", "add", "--detach", "--force", str(tree), revision]
        subprocess.run(words, check=True, capture_output=True)
    return tree


class Side(Child):
    """A tree's process, idle until it is asked."""

    def __init__(self, name: str, tree: Path, arguments: list[str]):
        # -P: the script's own folder has modules named like the rooms.
        command = [sys.executable, "-P", str(SIDE.resolve()), *arguments]
        super().__init__(command, FOLDER.resolve() / f"{name}.log", {**os.environ, "PYTHONPATH": str(tree)}, tree)

    def ask(self, question: Any) -> float:
        return float(super().ask(question))

    def _ended(self) -> CompareError:
        return CompareError(f"one side ended early; {self._log} says why")
