"""The endpoint of a run that names none: the embedded server, started with the first text that has to be encoded."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from common.errors import InputError
from model.contract import Contract
from serving.embedded import KEPT_VERSIONS, EmbeddedServer
from serving.endpoint.channel import ModelNotServed
from serving.storage.open import open_base

_running: dict[OwnServer, EmbeddedServer] = {}
_starting = threading.Lock()


@dataclass(frozen=True)
class OwnServer:
    """Steps are pickled with it: the process itself is looked up where it was started."""

    base: str
    compiled: bool  # compiling takes longer than encoding a few texts

    def contract(self, model: str | None = None) -> Contract:
        """Of the newest complete version, or of the one that has this fingerprint, without a server: a run with nothing
        to encode never starts one. ModelNotServed where no version that the server would keep has it."""
        base = open_base(self.base)
        kept = [version for version in reversed(base.versions()) if not base.incomplete(version)][:KEPT_VERSIONS]
        if not kept:
            raise InputError(f"no model in {self.base}; `make demo` makes one, or --serving HOST:PORT names a server")
        contracts = [base.contract(version) for version in kept]
        for contract in contracts:
            if model in (None, contract.fingerprint):
                return contract
        there = " and ".join(contract.fingerprint for contract in contracts)
        raise ModelNotServed(
            f"the newest {KEPT_VERSIONS} versions in {self.base} are of model {there}, none of {model}; publish that "
            "one again, or move the index by `python -m pipelines.reindex`"
        )

    def address(self) -> str:
        with _starting:
            if self not in _running:
                compiled = f"--xla_cpu_compilation_enabled={str(self.compiled).lower()}"
                kept = f"--keep_versions={KEPT_VERSIONS}"
                _running[self] = EmbeddedServer("--model_base_path", self.base, kept, compiled)
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
