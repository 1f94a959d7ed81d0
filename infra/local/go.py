"""Programs written in Go, built on this machine once and kept under build/local/bin."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from infra.local import processes
from infra.local.processes import Unavailable, alone

BUILD_SECONDS = 1800  # both programs, all caches cold, took 6 minutes on two busy cores


def build(name: str, version: str, program: Sequence[str], source: Path | None = None) -> Path:
    """The binary of `name` at `version`; `program` is what `go install` is told, in the module at `source` if any."""
    folder = processes.FOLDER / "bin"
    binary = folder / f"{name}-{version}"
    if binary.exists():
        return binary
    go = shutil.which("go")
    if go is None:
        raise Unavailable(f"{name} is built with Go and there is no `go` here; install Go 1.26 or newer on the PATH")
    folder.mkdir(parents=True, exist_ok=True)
    with alone(folder / "lock"):
        if not binary.exists():
            _install(go, name, program, source, binary)
    return binary


def _install(go: str, name: str, program: Sequence[str], source: Path | None, binary: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="go-", dir=binary.parent) as folder:
        # -modcacherw: Go's module folders are read-only otherwise, and a plain `rm -r` of them fails.
        command = [go, "install", "-modcacherw", *program]
        environment = {**os.environ, "GOBIN": folder}
        try:
            run = subprocess.run(
                command, cwd=source or folder, env=environment, capture_output=True, text=True, timeout=BUILD_SECONDS
            )
        except subprocess.TimeoutExpired:
            raise Unavailable(f"Go did not build {name} within {BUILD_SECONDS} s; run it again to go on") from None
        built = list(Path(folder).iterdir())
        if run.returncode or not built:
            said = " ".join(run.stderr.split())[-300:]
            raise Unavailable(f"Go did not build {name}: {said}; see to its version and its proxy (`go env GOPROXY`)")
        built[0].rename(binary)
