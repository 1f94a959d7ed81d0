"""Pub/Sub on this machine: Google's own fake, which speaks the real protocol and keeps everything in memory."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from infra.local.go import build
from infra.local.processes import Process, new_folder

SOURCE = Path(__file__).parent / "fake_pubsub"
FILES = ("go.mod", "go.sum", "main.go")


class PubSub(Process):
    """Without topics at its start. Clients find it by PUBSUB_EMULATOR_HOST, which is to be its `address`."""

    def __init__(self) -> None:
        command = [str(pubsub_binary())]
        super().__init__("pubsub", command, new_folder("pubsub"))
        self.address = self.wait_until(self._listening)

    def _listening(self) -> str:
        """It listens before it says so."""
        said = re.match(r"127\.0\.0\.1:\d+", self.last_words())
        return said[0] if said else ""


def pubsub_binary() -> Path:
    """Built anew where its source has changed."""
    source = b"".join((SOURCE / name).read_bytes() for name in FILES)
    return build("pubsub", hashlib.sha256(source).hexdigest()[:12], ["."], SOURCE)
