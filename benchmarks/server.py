"""The embedded server in a process of its own, as people start it, on a free port of this machine alone."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from model.errors import InputError

READY = r"ready: gRPC at [\w.]+:(\d+)"


class ServerError(InputError):
    """A server that did not start or did not load; the message ends with its own last line."""


class Server:
    """Ready to answer when the constructor returns."""

    def __init__(self, base: Path):
        self._base = base
        flags = ["--host", "127.0.0.1", "--port", "0", "--model_base_path", str(base)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "serving.server", *flags],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        )
        self.address = f"127.0.0.1:{self._wait_for(READY)[1]}"

    def swap(self) -> None:
        """Publishes what is served once more, as the next version; returns when that has taken over."""
        newest = max(int(entry.name) for entry in self._base.iterdir() if entry.name.isdecimal())
        add_version(self._base / str(newest), self._base, newest + 1)
        self._wait_for(rf"version {newest} is no longer served")

    def close(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.communicate()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _wait_for(self, pattern: str) -> re.Match:
        """Its log up to the line that is waited for; between two waits it writes far less than a pipe holds."""
        assert self._process.stderr is not None
        line = ""
        for line in self._process.stderr:
            found = re.search(pattern, line)
            if found:
                return found
            if "is not served" in line:
                break
        self.close()
        raise ServerError(f"the server on {self._base} gave up: {line.strip()}")


def add_version(source: Path, base: Path, number: int) -> None:
    """Complete at once, as `model.export` publishes; files are linked, for they are only read."""
    partial = base / f".{number}"
    shutil.copytree(source, partial, copy_function=os.link)
    partial.rename(base / str(number))
