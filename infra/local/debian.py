"""Debian's packages: installed once, where we may."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from infra.local.processes import Unavailable, alone

INSTALL_SECONDS = 900


def debian_tool(name: str, package: str) -> Path:
    """A program of Debian's: the one that is here, else installed."""
    found = shutil.which(name)
    if found is None:
        apt = shutil.which("apt-get")
        if apt is None or os.geteuid() != 0:
            raise Unavailable(f"there is no `{name}` here: install Debian's {package}, or put one on the PATH")
        with alone(Path(tempfile.gettempdir()) / "pause-apt.lock"):
            said = None if shutil.which(name) else apt_install(apt, package)
            found = shutil.which(name)
        if found is None:
            why = said or f"it put no `{name}` on the PATH"
            raise Unavailable(f"apt-get did not install {package}: {why}")
    return Path(found)


def apt_install(apt: str, package: str) -> str | None:
    """None where it went well, else apt's last words."""
    install = ("install", "--no-install-recommends", package)
    # The lists of packages may be old, or not there at all.
    return _run(apt, *install) and (_run(apt, "update") or _run(apt, *install))


def _run(apt: str, *command: str) -> str | None:
    try:
        run = subprocess.run(
            # Another apt-get may be at work: who comes second waits.
            [apt, "-q", "-y", "-o", f"DPkg::Lock::Timeout={INSTALL_SECONDS}", *command],
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"not done within {INSTALL_SECONDS} s"
    return " ".join((run.stdout + run.stderr).split())[-300:] if run.returncode else None
