"""The validators' own programs: those that are here, else installed once; nothing of theirs meets our environment."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from infra.local import processes
from infra.local.processes import Unavailable, alone

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
INSTALL_SECONDS = 900
# In an environment of its own: it pins more packages than all other validators together.
CHECKOV = [sys.executable, *"-m uv tool run --quiet --from checkov==3.3.30 checkov --skip-download".split()]


def python_tool(name: str) -> Path:
    """A program of a Python package, from an environment with exactly the packages of `requirements.txt`."""
    folder = processes.ROOT / "build" / "infra-tools"
    folder.parent.mkdir(exist_ok=True)
    wanted = REQUIREMENTS.read_text()
    with alone(folder.parent / "infra-tools.lock"):
        marker = folder / "installed.txt"
        if not marker.exists() or marker.read_text() != wanted:
            shutil.rmtree(folder, ignore_errors=True)
            _run([sys.executable, "-m", "venv", str(folder)])
            _run([sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", str(folder / "bin" / "python"),
                  "--requirement", str(REQUIREMENTS)])  # fmt: skip
            marker.write_text(wanted)
    return folder / "bin" / name


def _run(command: list[str]) -> None:
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"`{' '.join(command[:4])} ...` was not done within {INSTALL_SECONDS} s") from None
    if run.returncode:
        said = " ".join((run.stdout + run.stderr).split())[-300:]
        raise Unavailable(f"`{' '.join(command[:4])} ...` failed: {said}")
