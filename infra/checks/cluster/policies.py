"""The overlays held against checkov's policies for Kubernetes."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from infra.checks.cluster.render import Overlay, overlays
from infra.checks.tools import CHECKOV
from infra.local.processes import Unavailable

# What it asks for and we leave, with the reason.
LEFT = {
    "CKV_K8S_15": "pull policy Always: tags are never moved, and a registry that is away must not keep pods down",
    "CKV_K8S_35": "secrets as files: passwords are; the user's name, kept beside its password, comes as a variable",
    "CKV_K8S_43": "digests: whoever pushes the images knows them; `digest:` in components/images takes them",
}
CHECK_SECONDS = 300


def against_policies(root: Path) -> list[str]:
    rendered = overlays(root)
    with tempfile.TemporaryDirectory(prefix="policies-") as folder:
        for number, overlay in enumerate(rendered):
            (Path(folder) / f"{number}.yaml").write_text(overlay.text)
        return sorted({found for found in _violations(Path(folder), rendered)})


def _violations(folder: Path, rendered: list[Overlay]) -> Iterator[str]:
    command = [*CHECKOV, "--quiet", "--compact", "--framework", "kubernetes",
               "--output", "json", "--skip-check", ",".join(LEFT), "--directory", str(folder)]  # fmt: skip
    run = subprocess.run(
        command, cwd=folder, env={**os.environ, "LOG_LEVEL": "ERROR"}, capture_output=True, text=True,
        timeout=CHECK_SECONDS,
    )  # fmt: skip
    try:
        said = json.loads(run.stdout)
        failed = said["results"]["failed_checks"]
    except (ValueError, KeyError, TypeError):
        raise Unavailable(f"checkov failed: {' '.join((run.stdout + run.stderr).split())[-300:]}") from None
    for one in failed:
        overlay = rendered[int(Path(one["file_path"]).stem)]
        yield f"{overlay.name}: {one['resource']}: {one['check_name']} ({one['check_id']})"
