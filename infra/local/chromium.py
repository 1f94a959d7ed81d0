"""A Chromium on this machine, to drive the page with: the one that is there, else Debian's, installed once."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from infra.local import processes
from infra.local.debian import apt_install
from infra.local.processes import Unavailable, alone

NAMES = ("chromium", "chromium-browser", "google-chrome")
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
    said = apt_install(apt, NAMES[0])
    found = _present()
    if found is None:
        raise Unavailable(f"apt-get did not install chromium: {said or 'it put no such program there'}; {INSTEAD}")
    return found
