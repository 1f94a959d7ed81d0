"""What each image installs: the part of requirements.lock that its code needs, derived and never edited."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from infra.local.processes import Unavailable

# image: the extras of setup.py that it has besides what a worker needs
EXTRAS: dict[str, tuple[str, ...]] = {"pipeline": (), "search": ("serve",), "model": ("serve", "train")}
SECONDS = 600


def blocks(text: str) -> dict[str, str]:
    """Requirement -> all its lines: hashes, where there are any, follow on lines of their own."""
    found: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("#") or not line.strip():
            continue
        if not line[0].isspace():
            name = line.rstrip(" \\")
            found[name] = ""
        found[name] += f"{line}\n"
    return found


def lock(root: Path, image: str) -> Path:
    """Writes the file anew. Constrained by requirements.lock, it can differ from that only by what is left out."""
    whole = root / "requirements.lock"
    target = root / "infra" / "images" / f"{image}.lock"
    command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--python-version", "3.11", "--no-header",
               "--no-annotate", "--no-emit-index-url", "--no-emit-find-links", "--constraint", str(whole),
               *(f"--extra={extra}" for extra in EXTRAS[image]),
               *(["--generate-hashes"] if "--hash=" in whole.read_text() else []),
               "--output-file", str(target), "setup.py"]  # fmt: skip
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=SECONDS)
    if run.returncode:
        raise Unavailable(f"uv did not derive {target.name}: {' '.join(run.stderr.split())[-300:]}")
    return target
