"""One process of a soak: started, killed, terminated, and restarted where it ended by itself."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

# The kernel ends a child with the thread that started it; this one lives as long as the program.
_starter = ThreadPoolExecutor(1, thread_name_prefix="starter")
GENTLY_SECONDS = 60.0


def tied(command: Sequence[str]) -> list[str]:
    """The command such that it ends with this program, however that ends."""
    return [*(["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []), *command]


def python(module: str, *words: str) -> list[str]:
    return [sys.executable, "-m", module, *words]


@dataclass
class Life:
    """One process from its start to its end."""

    began: float
    ended: float = float("inf")
    how: str = ""


@dataclass
class Part:
    """A process that can be killed, stopped and started again under one name."""

    name: str
    command: Callable[[], Sequence[str]]  # made anew for each start
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    after: Callable[[], object] = lambda: None  # has ended, however

    def __post_init__(self) -> None:
        self.lives: list[Life] = []
        self.process: subprocess.Popen[bytes] | None = None
        self.wanted = False
        self._lock = threading.RLock()

    def start(self) -> None:
        with self._lock:
            command = tied(self.command())
            with self.log.open("ab") as log:
                log.write(f"--- {time.strftime('%H:%M:%S')} {' '.join(command)}\n".encode())
                log.flush()
                started = _starter.submit(
                    subprocess.Popen, command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=self.environment
                )
                self.process = started.result()
            self.lives.append(Life(time.time()))
            self.wanted = True

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process and self.process.poll() is None else None

    @property
    def age(self) -> float:
        return time.time() - self.lives[-1].began if self.lives and self.pid else 0.0

    def kill(self) -> None:
        self._end(signal.SIGKILL, "killed")

    def stop(self) -> int:
        """Ended as its operator would; its exit code."""
        self._end(signal.SIGTERM, "stopped")
        return self.process.returncode if self.process else 0

    def look(self) -> str:
        """Starts it anew where it ended unasked, as a supervisor would; what was its end."""
        with self._lock:
            if not self.wanted or self.process is None or self.process.poll() is None:
                return ""
            how = f"{self.name} ended by itself with {self.process.returncode}: {self.last_words()}"
            self._note(how)
            self.start()
            return how

    def last_words(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()[-60:] if self.log.exists() else []
        told = [line for line in lines if line.strip()]
        return " | ".join(told[-2:])[-600:]

    def _end(self, number: signal.Signals, how: str) -> None:
        with self._lock:
            self.wanted = False
            if self.process is None:
                return
            if self.process.poll() is None:
                self.process.send_signal(number)
            try:
                self.process.wait(GENTLY_SECONDS)
            except subprocess.TimeoutExpired:
                how = f"{how}, and killed after {GENTLY_SECONDS:.0f} s"
                self.process.kill()
                self.process.wait()
            self._note(how)

    def _note(self, how: str) -> None:
        self.lives[-1].ended, self.lives[-1].how = time.time(), how
        self.after()


def resident_bytes(pid: int) -> int:
    """Of a process and all below it."""
    below: dict[int, list[int]] = {}
    own: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            facts = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
        except (OSError, ValueError):
            continue  # it has ended meanwhile
        below.setdefault(int(facts["PPid"]), []).append(int(folder.name))
        own[int(folder.name)] = int(facts.get("VmRSS", "0 kB").split()[0]) * 1024
    total, left = 0, [pid]
    while left:
        one = left.pop()
        total += own.get(one, 0)
        left += below.get(one, [])
    return total
