"""The commands of the README, run in its order against a real API server, but for those that need pods."""

from __future__ import annotations

import re
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from infra.checks.cluster.apiserver import ApiServer, api_server
from infra.checks.cluster.render import FOLDER
from infra.local.debian import debian_tool

BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
# These wait for pods, talk to one, or have nothing to do with the cluster.
NEEDS_PODS = re.compile(r"kubectl (-n pause )?(wait|exec|cp|logs|rollout|get)\b|\$toolbox")
NAMESPACES = ("ingress-nginx", "monitoring")  # somebody's who has them
RUN_SECONDS = 120


def commands(root: Path) -> list[str]:
    """All that name kubectl, whole: lines that go on, and groups in braces."""
    found = []
    for block in BLOCK.findall((root / FOLDER / "README.md").read_text()):
        for part in re.split(r"\n(?![ }|])", block.replace("\\\n", " ")):
            if "kubectl" in part and not part.startswith("#") and not NEEDS_PODS.search(part):
                found.append(part.strip())
    return found


def refused_commands(root: Path) -> list[str]:
    with api_server() as server, tempfile.TemporaryDirectory(prefix="walkthrough-") as name:
        folder = Path(name)
        _prepare(server, folder)
        return list(_run(root, folder))


def _prepare(server: ApiServer, folder: Path) -> None:
    """A kubectl that asks this server, the namespaces of others, and the files that a person would have."""
    program = folder / "kubectl"
    program.write_text(f'#!/bin/bash\nexec {shlex.join(server.command())} "$@"\n')
    program.chmod(0o755)
    for name in NAMESPACES:
        server.kubectl("create", "namespace", name)
    (folder / "keys").write_text(f"ann read,feedback {'0' * 64}\n")
    key, certificate = folder / "privkey.pem", folder / "fullchain.pem"
    subprocess.run(
        [str(debian_tool("openssl", "openssl")), "req", "-x509", "-newkey", "rsa:2048", "-nodes",
         "-subj", "/CN=companies.example.com", "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    (folder / "ca.crt").write_bytes(certificate.read_bytes())


def _run(root: Path, folder: Path) -> Iterator[str]:
    (folder / "infra").symlink_to(root / "infra")
    debian_tool("jq", "jq")
    environment = {"PATH": f"{folder}:/usr/local/bin:/usr/bin:/bin", "SIGNING": "0" * 64, "HOME": str(folder)}
    for command in commands(root):
        run = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=folder, env=environment, capture_output=True, text=True, timeout=RUN_SECONDS,
        )  # fmt: skip
        if run.returncode and not (run.returncode == 1 and command.startswith("kubectl diff")):  # 1: there are some
            said = " ".join(run.stderr.split())[-300:]
            yield f"{(FOLDER / 'README.md').as_posix()}: `{' '.join(command.split())[:100]}` failed: {said}"
