"""A container of an image that buildah built, by runc: as the image's user, on a read-only root, without capabilities
or new privileges, as compose.yaml and the cluster start it. The network is that of whoever starts it."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from infra.images.local.buildah import buildah, settings
from infra.local.debian import debian_tool
from infra.local.processes import NotStarted

STOP_SECONDS = 30.0
HOSTS = "127.0.0.1 localhost container\n"  # as Docker writes it
TMPFS = {"type": "tmpfs", "source": "tmpfs"}


class Container:
    """Started as it is made, ended and gone as it is left."""

    def __init__(
        self,
        image: str,
        command: Sequence[str] = (),
        mounts: Mapping[str, Path] | None = None,
        entrypoint: Sequence[str] | None = None,
        writable: Sequence[str] = (),
    ):
        """`mounts`: path in the container -> here, read-only unless among `writable`."""
        self.image, self._name = image, f"{image}-{uuid.uuid4().hex[:8]}"
        self._runc = [str(debian_tool("runc", "runc"))]
        self._origin = buildah("from", "--pull-never", image)
        self.settings = settings(self._origin)
        self._bundle = Path(tempfile.mkdtemp(prefix="bundle-"))
        self.log = self._bundle / "log"
        first = self.settings.get("Entrypoint") or [] if entrypoint is None else entrypoint
        arguments = [*first, *(command or (self.settings.get("Cmd") or [] if entrypoint is None else []))]
        (self._bundle / "hosts").write_text(HOSTS)
        mounts = {"/etc/hosts": self._bundle / "hosts", **(mounts or {})}
        root = buildah("mount", self._origin)
        spec = _specification(root, self.settings, arguments, mounts, writable)
        (self._bundle / "config.json").write_text(json.dumps(spec))
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [*self._runc, "run", "--bundle", str(self._bundle), self._name],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def wait(self, seconds: float) -> str:
        """What a job printed; raises where it failed or takes longer."""
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise NotStarted(f"{self.image} has not ended within {seconds:.0f} s: {self.said[-600:]}") from None
        if code:
            raise NotStarted(f"{self.image} ended with {code}: {self.said[-1000:]}")
        return self.said

    def execute(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Another program in it, as the same user."""
        return subprocess.run([*self._runc, "exec", self._name, *command], capture_output=True, text=True, timeout=60)

    def healthy(self, seconds: float) -> None:
        """Returns when its own HEALTHCHECK says so."""
        check = self.settings["Healthcheck"]["Test"]
        deadline = time.monotonic() + seconds
        while self._process.poll() is None and time.monotonic() < deadline:
            if self.execute(*check[1:]).returncode == 0:
                return
            time.sleep(1)
        raise NotStarted(f"{self.image} did not get healthy within {seconds:.0f} s: {self.said[-1000:]}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for signal in ("TERM", "KILL"):
            if self._process.poll() is None:
                subprocess.run([*self._runc, "kill", self._name, signal], capture_output=True)
                try:
                    self._process.wait(STOP_SECONDS)
                except subprocess.TimeoutExpired:
                    continue
        subprocess.run([*self._runc, "delete", "--force", self._name], capture_output=True)
        buildah("rm", self._origin)
        shutil.rmtree(self._bundle, ignore_errors=True)


def _specification(
    root: str, image: Mapping[str, Any], arguments: list[str], mounts: Mapping[str, Path], writable: Sequence[str]
) -> dict[str, Any]:
    """As the runtimes' own format has it."""
    user, _, group = str(image["User"]).partition(":")
    none: list[str] = []
    kinds = ("bounding", "effective", "inheritable", "permitted", "ambient")
    binds = [
        {"destination": inside, "type": "bind", "source": str(outside), "options": ["rbind", mode]}
        for inside, outside in mounts.items()
        for mode in ("rw" if inside in writable else "ro",)
    ]
    return {
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": int(user), "gid": int(group or user)},
            "args": arguments,
            "env": list(image.get("Env") or []),
            "cwd": image.get("WorkingDir") or "/",
            "capabilities": dict.fromkeys(kinds, none),
            "noNewPrivileges": True,
        },
        "root": {"path": root, "readonly": True},
        "hostname": "container",
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", **TMPFS, "options": ["nosuid", "mode=755"]},
            {"destination": "/dev/shm", **TMPFS, "options": ["nosuid", "nodev", "mode=1777"]},
            {"destination": "/tmp", **TMPFS, "options": ["nosuid", "nodev", "mode=1777"]},
            *binds,
        ],
        "linux": {"namespaces": [{"type": kind} for kind in ("pid", "ipc", "uts", "mount")]},
    }
