"""Prism, Beam's portable runner, on this machine: as a binary for `--prism_location`, or as a server to submit jobs to.

Beam starts the binary for itself where the location is given, and ends it with the program; one that is killed leaves
its Prism behind. The server here ends in any case, and serves several jobs: `--runner=PrismRunner --job_endpoint=...`.
"""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

from infra.local.go import build
from infra.local.processes import Process, new_folder

PACKAGE = "github.com/apache/beam/sdks/v2/go/cmd/prism"


class Prism(Process):
    """A job server at `address`; it listens on every interface, for Prism has no flag for that."""

    def __init__(self) -> None:
        command = [str(prism_binary()), "--job_port=0", "--serve_http=false", "--log_kind=text"]
        super().__init__("prism", command, new_folder("prism"))
        self.address = self.wait_until(self._listening)

    def _listening(self) -> str:
        said = re.search(r"endpoint=localhost:(\d+)", self.last_words())
        return f"127.0.0.1:{said[1]}" if said else ""


def prism_binary() -> Path:
    """The Prism of the Beam that is installed: the two speak to each other, and are released together."""
    release = f"v{version('apache-beam')}"
    return build("prism", release, [f"{PACKAGE}@{release}"])
