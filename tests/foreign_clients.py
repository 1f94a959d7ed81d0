"""Clients of TensorFlow Serving that others wrote, or that know it from its public messages alone; each made once."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from infra.local import processes
from infra.local.go import build
from infra.local.processes import Unavailable, alone

SOURCES = Path(__file__).parent / "serving" / "foreign"
GO_FILES = ("go.mod", "go.sum", "main.go")
# Its messages were generated for protocol buffers 3, which is why it needs an environment of its own.
MIN_TFS_CLIENT = (
    "min-tfs-client==1.0.2", "protobuf==3.20.3", "grpcio==1.85.1", "numpy==2.4.6", "typing-extensions==4.16.0",
)  # fmt: skip
INSTALL_SECONDS, ANSWER_SECONDS = 600, 120


def min_tfs_client() -> Path:
    """A Python that has PyPI's min-tfs-client."""
    version = hashlib.sha256(" ".join(MIN_TFS_CLIENT).encode()).hexdigest()[:12]
    home = processes.FOLDER / f"min-tfs-client-{version}"
    processes.FOLDER.mkdir(parents=True, exist_ok=True)
    with alone(processes.FOLDER / "min-tfs-client.lock"):
        if not home.exists():
            _install(home)
    return home / "bin" / "python"


def _install(home: Path) -> None:
    uv = shutil.which("uv", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
    if uv is None:
        raise Unavailable("min-tfs-client is installed by uv, and there is no `uv` here: `pip install uv`")
    folder = home.with_suffix(".new")
    shutil.rmtree(folder, ignore_errors=True)  # of one that was killed
    python = str(folder / "bin" / "python")
    for command in (
        [uv, "venv", "--quiet", "--python", sys.executable, str(folder)],
        [uv, "pip", "install", "--quiet", "--no-deps", "--python", python, *MIN_TFS_CLIENT],
    ):
        run = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS)
        if run.returncode:
            said = " ".join(run.stderr.split())[-300:]
            raise Unavailable(f"min-tfs-client was not installed: {said}; is the package index within reach?")
    folder.rename(home)


def go_client() -> Path:
    source = SOURCES / "go_client"
    content = b"".join((source / name).read_bytes() for name in GO_FILES)
    return build("go_client", hashlib.sha256(content).hexdigest()[:12], ["."], source)


def write_descriptors(path: Path, *modules) -> Path:
    """The public messages of these generated modules, and of all that they import, for a client in any language."""
    found: dict[str, FileDescriptor] = {}

    def add(file: FileDescriptor) -> None:
        if file.name not in found:
            found[file.name] = file
            for imported in file.dependencies:
                add(imported)

    for module in modules:
        add(module.DESCRIPTOR)
    files = FileDescriptorSet()
    for file in found.values():
        file.CopyToProto(files.file.add())
    path.write_bytes(files.SerializeToString())
    return path


def ask(command: list[str | Path], request: object):
    """What a client that reads JSON and writes JSON answers."""
    run = subprocess.run(
        [str(part) for part in command],
        input=json.dumps(request), capture_output=True, text=True, timeout=ANSWER_SECONDS,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)
