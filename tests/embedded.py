"""The real embedded server in a process of its own, with what tests do to one."""

import os
from pathlib import Path

from common.ports import free_port
from serving.embedded import EmbeddedServer as Embedded


class EmbeddedServer(Embedded):
    """Looks for new versions and retries more often than people need."""

    def __init__(self, base: Path, *flags: str, rest: bool = True):
        super().__init__(
            *("--rest_api_port", str(free_port() if rest else 0), "--model_base_path", str(base)),
            *("--file_system_poll_wait_seconds", "0.1", "--load_retry_interval_micros", "200000"),
            *flags,
        )

    @property
    def rest(self) -> str:
        return f"http://127.0.0.1:{self.rest_port}"

    def restart(self) -> None:
        """On the port it had."""
        self.flags[self.flags.index("--port") + 1] = str(self.port)
        self.start()

    def kill(self) -> None:
        self.process.kill()
        self.stop()

    def memory(self) -> int:
        """Resident bytes."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
