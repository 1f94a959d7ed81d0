"""The images: their locks, and a build and a trial of them where there is neither Docker nor a registry of images.

python -m infra.images lock     # infra/images/*.lock from setup.py and requirements.lock
python -m infra.images build    # by buildah, from the same Dockerfiles, on stand-ins for their base images
python -m infra.images try      # those started, each as its own user on a read-only root, and put to work
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from common.command import Parser, exit_code
from infra.images import locks
from infra.images.dockerfile import dockerfiles
from infra.images.local import bases, trial
from infra.images.local.buildah import build
from infra.local.processes import ROOT

PIP_SETTINGS = Path("/etc/pip.conf")  # this machine's own, if any: where packages come from
# pause-serving last: the stand-in for its base is made of pause-model
ORDER = ("pause-pipeline", "pause-search", "pause-model", "pause-serving")


def lock() -> None:
    for image in locks.EXTRAS:
        path = locks.lock(ROOT, image)
        print(f"{path.relative_to(ROOT)}: {len(locks.blocks(path.read_text()))} packages")


def build_all() -> None:
    files = dockerfiles(ROOT)
    volumes = [f"{PIP_SETTINGS}:{PIP_SETTINGS}:ro"] if PIP_SETTINGS.exists() else []
    for name in ORDER:
        began = time.monotonic()
        for base in files[name].bases:
            bases.make(base)
        context = ROOT / "serving" if name == "pause-serving" else ROOT
        build(files[name].path, context, name, volumes)
        print(f"{name:<16} {trial.megabytes(name):6,.0f} MB {time.monotonic() - began:6.0f} s", flush=True)


def main(argv: list[str] | None = None) -> int:
    parser = Parser(prog="python -m infra.images", description=__doc__)
    work = {"lock": lock, "build": build_all, "try": trial.run}
    parser.add_argument("what", choices=list(work))
    arguments = parser.parse_args(argv)
    return exit_code(work[arguments.what])


if __name__ == "__main__":
    sys.exit(main())
