"""`docker compose config`, by the real program, built from its source: it needs no engine for that."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

from infra.checks.containers.compose_file import FILE, REQUIRED
from infra.local.go import build

SOURCE = Path(__file__).parent / "go_compose"
PROGRAM = "github.com/docker/compose/v2/cmd"


def program() -> Path:
    source = b"".join((SOURCE / name).read_bytes() for name in ("go.mod", "go.sum"))
    return build("docker-compose", hashlib.sha256(source).hexdigest()[:12], [PROGRAM], SOURCE)


def config(root: Path) -> list[str]:
    """What it refuses, and what it warns of."""
    command = [str(program()), "--file", str(root / FILE), "--profile", "stream", "config", "--quiet"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PAUSE_")}
    run = subprocess.run(command, capture_output=True, text=True, env={**environment, **REQUIRED})
    return [f"{FILE}: {line.strip()}" for line in run.stderr.splitlines() if line.strip()]
