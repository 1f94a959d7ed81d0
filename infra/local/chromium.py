"""A Chromium on this machine, to drive the page with: the one that is there, else Debian's, installed once."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from infra.local import processes
from infra.local.processes import Unavailable, alone

NAMES = ("chromium", "chromium-browser", "google-chrome")
INSTALL_SECONDS = 900
INSTEAD = "install Chromium on the PATH, or name one by PAUSE_CHROMIUM"
# No sandbox: it refuses root, as containers have it. The rest keeps it from calling home.
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


def chromium_binary() -> Path:
    named = os.environ.get("PAUSE_CHROMIUM")
    if named:
        return _named(named)
    found = _present()
    if found:
        return found
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        why = "apt-get needs root to install one" if apt else "no apt-get to install one with"
        raise Unavailable(f"there is no Chromium here ({', '.join(NAMES)}), and {why}: {INSTEAD}")
    processes.FOLDER.mkdir(parents=True, exist_ok=True)
    with alone(processes.FOLDER / "chromium.lock"):
        return _present() or _install(apt)


def _named(name: str) -> Path:
    found = shutil.which(name)
    if found is None:
        raise Unavailable(f"PAUSE_CHROMIUM is {name!r}, which is no program: give the path of a Chromium, or unset it")
    return Path(found)


def _present() -> Path | None:
    found = next(filter(None, map(shutil.which, NAMES)), None)
    return Path(found) if found else None


def _install(apt: str) -> Path:
    said = _run(apt, "install")
    if said is not None:  # the lists of packages may be old, or not there at all
        said = _run(apt, "update") or _run(apt, "install")
    found = _present()
    if found is None:
        raise Unavailable(f"apt-get did not install chromium: {said or 'it put no such program there'}; {INSTEAD}")
    return found


def _run(apt: str, command: str) -> str | None:
    """None where it went well, else its last words."""
    packages = ["--no-install-recommends", NAMES[0]] if command == "install" else []
    try:
        run = subprocess.run(
            # Another apt-get may be at work: who comes second waits.
            [apt, "-q", "-y", "-o", f"DPkg::Lock::Timeout={INSTALL_SECONDS}", command, *packages],
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"not done within {INSTALL_SECONDS} s"
    return " ".join((run.stdout + run.stderr).split())[-300:] if run.returncode else None
