"""The embedded server with compiled graphs, and how it is made to load one more version."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from serving.embedded import EmbeddedServer


class Server(EmbeddedServer):
    """Ready to answer when the constructor returns."""

    def __init__(self, base: Path):
        super().__init__("--model_base_path", str(base))
        self._base = base

    def swap(self) -> None:
        """Publishes what is served once more, as the next version; returns when that has taken over."""
        newest = max(int(entry.name) for entry in self._base.iterdir() if entry.name.isdecimal())
        before = len(self.log)
        add_version(self._base / str(newest), self._base, newest + 1)
        self.wait_for(rf"version {newest} is no longer served", before)


def add_version(source: Path, base: Path, number: int) -> None:
    """Complete at once, as `model.export` publishes; files are linked, for they are only read."""
    partial = base / f".{number}"
    shutil.copytree(source, partial, copy_function=os.link)
    partial.rename(base / str(number))
