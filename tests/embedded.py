"""The real embedded server in a process of its own, as people run it."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

READY = re.compile(r"ready: gRPC at [\w.]+:(\d+)(?:, REST at [\w.]+:(\d+))?")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


class EmbeddedServer:
    """Started on free ports of 127.0.0.1; `log` is what it has written so far."""

    def __init__(self, base: Path | None, *flags: str, rest: bool = True, port: int = 0):
        self._flags = [
            *("--host", "127.0.0.1", "--port", str(port), "--rest_api_port", str(free_port() if rest else 0)),
            *(("--model_base_path", str(base)) if base else ()),
            *("--file_system_poll_wait_seconds", "0.1", "--load_retry_interval_micros", "200000"),
            *flags,
        ]
        self.log = ""
        self._said = threading.Condition()
        self.start()

    def start(self) -> None:
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
        command = [sys.executable, "-m", "serving.server", *self._flags]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        self._reader = threading.Thread(target=self._read, daemon=True)
        before = len(self.log)
        self._reader.start()
        ports = READY.search(self.wait_for(READY.pattern, since=before))
        self.port, self.rest_port = int(ports[1]), int(ports[2] or 0)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def rest(self) -> str:
        return f"http://127.0.0.1:{self.rest_port}"

    def restart(self) -> None:
        """On the port it had."""
        self._flags[self._flags.index("--port") + 1] = str(self.port)
        self.start()

    def wait_for(self, pattern: str, since: int = 0, seconds: float = 120) -> str:
        """What was logged since then, once it holds the pattern."""
        with self._said:
            found = self._said.wait_for(
                lambda: re.search(pattern, self.log[since:]) or self.process.poll() is not None, seconds
            )
        assert found and re.search(pattern, self.log[since:]), f"no {pattern!r} in the log:\n{self.log[since:]}"
        return self.log[since:]

    def kill(self) -> None:
        self.process.kill()
        self._ended()

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self._ended()
        return self.process.returncode

    def memory(self) -> int:
        """Resident bytes."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def _ended(self) -> None:
        self.process.wait(60)
        self._reader.join()
        self.process.stderr.close()

    def _read(self) -> None:
        for line in self.process.stderr:
            with self._said:
                self.log += line
                self._said.notify_all()
        with self._said:
            self._said.notify_all()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
