"""Real servers as processes beside the program that needs them: started, waited for, and ended with that program."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self, TypeVar

from common.errors import InputError, Outage

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "local"  # what was downloaded or built stays; a server's data goes when it ends
START_SECONDS = 120.0
STOP_SECONDS = 40.0
PAUSE_SECONDS = 0.1

Ready = TypeVar("Ready")


class Unavailable(InputError):
    """This machine lacks what a server needs; the message says what, and what to do instead."""


class NotStarted(Outage):
    """The server ended, or did not get ready in time; its own last words are in the message."""


def new_folder(name: str) -> Path:
    """An empty one for the data of one server."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=FOLDER))


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    """For what is made once: who comes second waits, and finds it there. Two lines of the standard library: filelock
    would be a package more for them."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class Process:
    """One server. `folder` is its own and goes with it; its log is kept there as `log`."""

    address = ""  # where it answers, once it does

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str] | None = None,
    ):
        self.name, self.folder = name, folder
        self.log = folder / "log"
        self._stopped, self._said = False, ""
        self.log.touch()
        given = {"command": list(command), "log": str(self.log), "folder": str(folder)}
        # In a session of its own: Ctrl-C is for the program, which then lets go of the server.
        self._keeper = subprocess.Popen(
            [sys.executable, "-m", "infra.local.keeper", json.dumps(given)],
            cwd=ROOT,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def wait_until(self, ready: Callable[[], Ready | None], seconds: float = START_SECONDS) -> Ready:
        """The first answer of `ready` that is true; NotStarted, and the server ended, where there is none in time."""
        deadline = time.monotonic() + seconds
        words = ""
        try:
            while self._keeper.poll() is None and time.monotonic() < deadline:
                answer = ready()
                if answer:
                    return answer
                words = self.last_words() or words  # the log goes with the folder
                time.sleep(PAUSE_SECONDS)
        except BaseException:
            self.stop()
            raise
        ended = self._keeper.poll() is not None
        said = self.stop()
        how = "ended" if ended else f"was not ready after {seconds:.0f} s"
        raise NotStarted(f"{self.name} {how}: {words or ' '.join(said.split())[-500:] or 'it said nothing'}")

    def last_words(self) -> str:
        try:
            return " ".join(self.log.read_text(errors="replace").split())[-1000:]
        except OSError:
            return ""

    def kill_and_restart(self, gently: bool = False) -> None:
        """As after a power cut, or as its operator would: its folder is as it was. Whether it is ready is another
        question."""
        assert self._keeper.stdin is not None
        self._keeper.stdin.write("gently\n" if gently else "again\n")
        self._keeper.stdin.flush()

    @property
    def pid(self) -> int:
        """Of its keeper, whose child it is."""
        return self._keeper.pid

    def stop(self) -> str:
        """Returns when it has ended and its folder is gone; what its keeper had to say."""
        if not self._stopped:
            self._stopped = True
            # Closes its standard input, which ends it.
            _, self._said = self._keeper.communicate(timeout=STOP_SECONDS)
            shutil.rmtree(self.folder, ignore_errors=True)  # where the keeper itself was killed
        return self._said

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
