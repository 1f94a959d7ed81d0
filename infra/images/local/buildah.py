"""buildah, which builds images without a daemon; what it keeps is below build/images."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from infra.local import processes
from infra.local.debian import debian_tool
from infra.local.processes import Unavailable

SECONDS = 3600
ISOLATION = ("--isolation", "chroot", "--network", "host")  # neither a daemon nor bridges


class NotBuilt(Unavailable):
    """A step failed; its last words are in the message."""


def folder() -> Path:
    return processes.ROOT / "build" / "images"


def buildah(*words: str) -> str:
    """What it prints. As root alone: an image's files belong to others."""
    if os.geteuid() != 0:
        raise Unavailable("images are built as root here; `docker build` does the same for anybody")
    program = debian_tool("buildah", "buildah")
    storage = ["--root", str(folder() / "storage"), "--runroot", str(folder() / "run"), "--storage-driver", "vfs"]
    run = subprocess.run([str(program), *storage, *words], capture_output=True, text=True, timeout=SECONDS)
    if run.returncode:
        raise NotBuilt(f"buildah {words[0]} failed: {' '.join((run.stdout + run.stderr).split())[-600:]}")
    return run.stdout.strip()


def has(image: str) -> bool:
    try:
        return bool(buildah("images", "--quiet", image))
    except NotBuilt:
        return False


def build(file: Path, context: Path, image: str, volumes: Sequence[str] = ()) -> None:
    """By its Dockerfile, of base images that are here already."""
    given = [word for volume in volumes for word in ("--volume", volume)]
    how = [*ISOLATION, "--pull-never", "--format", "docker"]  # docker: that format alone keeps HEALTHCHECK
    buildah("bud", *how, *given, "--file", str(file), "--tag", image, str(context))


def settings(container: str) -> dict[str, Any]:
    """User, Env, Entrypoint, Cmd, WorkingDir, Healthcheck, ExposedPorts, as a runtime would take them."""
    docker = json.loads(buildah("inspect", "--type", "container", container))["Docker"]
    return dict(docker["config"])
