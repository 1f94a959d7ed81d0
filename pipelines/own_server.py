"""The endpoint of a run that names none: the embedded server, started with the first text that has to be encoded."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from model.contract import Contract
from model.errors import InputError
from serving.embedded import EmbeddedServer
from serving.storage import open_base

_running: dict[OwnServer, EmbeddedServer] = {}
_starting = threading.Lock()


@dataclass(frozen=True)
class OwnServer:
    """Steps are pickled with it: the process itself is looked up where it was started."""

    base: str
    compiled: bool  # compiling takes longer than encoding a few texts

    def contract(self) -> Contract:
        """As the newest complete version states it, without a server: a run with nothing to encode never starts one."""
        base = open_base(self.base)
        newest = base.newest()
        if newest is None:
            raise InputError(f"no model in {self.base}; `make demo` makes one, or --serving HOST:PORT names a server")
        return base.contract(newest)

    def address(self) -> str:
        with _starting:
            if self not in _running:
                compiled = f"--xla_cpu_compilation_enabled={str(self.compiled).lower()}"
                _running[self] = EmbeddedServer("--model_base_path", self.base, compiled)
            return _running[self].address

    @contextmanager
    def stopped_after(self) -> Iterator[None]:
        try:
            yield
        finally:
            with _starting:
                server = _running.pop(self, None)
            if server:
                server.stop()
