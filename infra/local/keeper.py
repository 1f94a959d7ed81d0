"""Runs one command for as long as standard input stays open: `python -m infra.local.keeper JSON`.

Whoever starts it holds the other end, and the kernel closes that however they end; so nothing is left running, and no
folder left behind, by a program that was killed. A line on standard input kills the command and starts it anew; the
line `gently` asks it to end first, and waits.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

GRACE_SECONDS = 20.0
ORPHAN_SECONDS = 5.0


class Keeper:
    """Runs one command as a child; ends it and its children, and removes its folder, when its user is gone."""

    def __init__(self, command: list[str], log: str, folder: str):
        self._command, self._log, self._folder = command, log, folder
        self._lock, self._again, self._over = threading.Lock(), False, False

    def run(self) -> int:
        """The exit code of the command; its folder goes when it has ended."""
        try:
            self._start()
            threading.Thread(target=self._obey, daemon=True).start()
            while True:
                code = self._process.wait()
                self._end_children()
                with self._lock:
                    if self._over or not self._again:
                        return code
                    self._again = False
                    self._start()
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self) -> None:
        with open(self._log, "ab") as out:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            )

    def _obey(self) -> None:
        # Unbuffered: a command that ends by itself leaves this thread waiting here, and a buffer's lock with it, which
        # Python cannot take back as it ends, and dies of.
        for line in open(sys.stdin.fileno(), "rb", buffering=0, closefd=False):  # noqa: SIM115
            with self._lock:
                self._again = True
                self._signal(signal.SIGTERM if line.strip() == b"gently" else signal.SIGKILL)
        with self._lock:
            self._over = True
            self._signal(signal.SIGTERM)
        try:
            self._process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)

    def _end_children(self) -> None:
        """Those that outlived it. They die a moment after they are told to, and are there until init has seen it."""
        deadline = time.monotonic() + ORPHAN_SECONDS
        while self._signal(signal.SIGKILL) and time.monotonic() < deadline:
            time.sleep(0.01)

    def _signal(self, number: signal.Signals) -> bool:
        """To the whole group: servers start helpers of their own. False where nobody is left."""
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            return False
        return True


def main(argv: list[str] | None = None) -> int:
    (given,) = sys.argv[1:] if argv is None else argv
    code = Keeper(**json.loads(given)).run()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
