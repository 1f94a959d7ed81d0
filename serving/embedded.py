"""The embedded server as a process beside the program that needs one while it runs."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from typing import Self

from common.errors import Outage

READY = re.compile(r"ready: gRPC at (?P<host>\S+):(?P<port>\d+)(?:, REST at \S+:(?P<rest>\d+))?\n")
KEPT_VERSIONS = 2  # of ours: the newest, and the one that an index has until it is moved
START_SECONDS, STOP_SECONDS = 300.0, 60.0


class ServerSilent(Outage):
    """The server ended, or never said what was waited for, being ready for one; its own last words are in here."""


class EmbeddedServer:
    """Listens on a free port of this machine only, and ends with the program that started it, however that ends."""

    def __init__(self, *flags: str):
        """`flags` as of `python -m serving.server`."""
        self.flags = ["--host", "127.0.0.1", "--port", "0", *flags]
        self.log = ""
        self._said = threading.Condition()
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "serving.server", "--stop_with_stdin", *self.flags]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", errors="replace"
        )
        self._reader = threading.Thread(target=self._read, name="server-log", daemon=True)
        before, self._log_ended = len(self.log), False
        self._reader.start()
        try:
            ready = self.wait_for(READY, before, START_SECONDS)
        except BaseException:
            self.process.kill()
            self._ended()
            raise
        self.port, self.rest_port = int(ready["port"]), int(ready["rest"] or 0)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def wait_for(self, pattern: re.Pattern[str] | str, since: int = 0, seconds: float = 120) -> re.Match[str]:
        """The first match in what was logged since then; ServerSilent where the server ends or takes longer."""
        with self._said:
            self._said.wait_for(lambda: re.search(pattern, self.log[since:]) or self._log_ended, seconds)
            found = re.search(pattern, self.log[since:])
        if found is None:
            last_words = " ".join(self.log[since:].split())[-1000:]
            raise ServerSilent(f"the embedded server did not get ready: {last_words or 'it said nothing'}")
        return found

    def stop(self) -> int:
        """Lets requests that have begun finish; its exit code."""
        if self.process.poll() is None:
            self.process.terminate()
        self._ended()
        return int(self.process.returncode)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _ended(self) -> None:
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._reader.join()
        for pipe in (self.process.stdin, self.process.stderr):
            if pipe:
                pipe.close()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._said:
                self.log += line
                self._said.notify_all()
        with self._said:
            self._log_ended = True
            self._said.notify_all()
