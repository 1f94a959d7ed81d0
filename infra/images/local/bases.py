"""Stand-ins for the base images, under their names, where no registry of images is within reach: Debian in place of
the official Python image (which is Debian, too), Beam's boot program built from its source, and for TensorFlow Serving
the embedded server, which takes the same flags. Google's launcher of templates cannot be had: its stand-in says so."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from infra.images.local.buildah import buildah, folder, has
from infra.local.debian import debian_tool
from infra.local.go import build as go_build
from infra.local.processes import Unavailable, alone

SUITE = "bookworm"  # its Python is 3.11
PACKAGES = "python3,python3-venv,python3-pip,ca-certificates"
AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")  # whom this machine believes: a proxy may be among them
BOOT = "github.com/apache/beam/sdks/v2/python/container"
SECONDS = 1800
LAUNCHER = """#!/bin/sh
echo "this image was built without Google's launcher of templates" >&2
exit 70
"""
MODEL_SERVER = """#!/bin/sh
# The embedded server in place of tensorflow_model_server.
exec python -m serving.server --host 0.0.0.0 "$@"
"""


def debian() -> Path:
    """A file system of Debian with Python, made once."""
    root = folder() / "debian"
    folder().mkdir(parents=True, exist_ok=True)
    with alone(folder() / "debian.lock"):
        if not (root / "made").exists():
            shutil.rmtree(root, ignore_errors=True)
            program = debian_tool("debootstrap", "debootstrap")
            _run([str(program), "--variant=minbase", f"--include={PACKAGES}", SUITE, str(root), *_mirror()])
            for name in ("python", "python3"):  # where the official image has them
                (root / "usr/local/bin" / name).symlink_to("/usr/bin/python3.11")
            shutil.rmtree(root / "var/cache/apt/archives", ignore_errors=True)
            (root / "made").touch()
    return root


def _mirror() -> list[str]:
    """That of this machine's own packages; debootstrap knows one itself otherwise."""
    wanted = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", f"Codename: {SUITE}"]
    if shutil.which(wanted[0]) is None:
        return []
    return subprocess.run(wanted, capture_output=True, text=True).stdout.split()[:1]


def _run(command: list[str]) -> None:
    run = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    if run.returncode:
        raise Unavailable(f"{Path(command[0]).name} failed: {' '.join((run.stdout + run.stderr).split())[-400:]}")


def commit(image: str, origin: str, files: dict[str, Path | str], user: str = "0:0") -> None:
    """An image with `files`, path: a file or folder to copy, or the text of a program."""
    container = buildah("from", "--pull-never", origin)
    try:
        place = Path(buildah("mount", container))
        for name, content in files.items():
            target = place / name.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, str):
                target.write_text(content)
                target.chmod(0o755)
            elif content.is_dir():
                _run(["cp", "--archive", f"{content}/.", str(target)])
            else:
                shutil.copy(content, target)
        buildah("umount", container)
        buildah("config", "--user", user, container)
        buildah("commit", "--format", "docker", container, image)
    finally:
        buildah("rm", container)


def make(image: str) -> None:
    """The stand-in for the base image of that name."""
    if has(image):
        return
    print(f"making a stand-in for {image} ...", file=sys.stderr, flush=True)
    if image.startswith("python:"):
        commit(image, "scratch", {"/": debian(), str(AUTHORITIES): AUTHORITIES})
    elif image.startswith("apache/beam"):
        release = f"v{version('apache-beam')}"
        commit(image, "scratch", {"/opt/apache/beam/boot": go_build("beam-boot", release, [f"{BOOT}@{release}"])})
    elif "template-launcher" in image:
        commit(image, "scratch", {"/opt/google/dataflow/python_template_launcher": LAUNCHER})
    elif image.startswith("tensorflow/serving:"):
        commit(image, "pause-model", {"/usr/bin/tensorflow_model_server": MODEL_SERVER})
    else:
        raise Unavailable(f"there is no stand-in for the base image {image}")
