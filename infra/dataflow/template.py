"""The flex template: `python -m infra.dataflow.template`, or `make template`.

Writes what Dataflow is told of the pipeline; with an image and a bucket also the template itself, and the commands that
put it there.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from common.command import Parser, exit_code
from common.errors import InputError
from infra.dataflow.parameters import metadata
from infra.local.processes import Unavailable

KEPT = Path(__file__).with_name("metadata.json")
FOLDER = Path("build/dataflow")
OBJECT = "templates/pause-encode.json"
# A tag that moves would give the workers of a running job another program than its launcher had.
IMAGE = re.compile(r"[a-z0-9][a-z0-9./:_-]*(:(?!latest$)[A-Za-z0-9_][\w.-]*|@sha256:[0-9a-f]{64})")
BUCKET = re.compile(r"gs://[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]")


def specification(image: str) -> dict[str, Any]:
    """The template as it lies in the bucket: which image, and what it may be given."""
    return {
        "image": image,
        "sdkInfo": {"language": "PYTHON", "version": importlib.metadata.version("apache-beam")},
        "metadata": metadata(),
        # One image for launcher and workers: what was tried is what runs. Neither has an address in public.
        "defaultEnvironment": {"sdkContainerImage": image, "ipConfiguration": "WORKER_IP_PRIVATE"},
    }


def as_text(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2) + "\n"


def commands(template: Path, bucket: str) -> list[list[str]]:
    """What puts the template where Dataflow finds it, and shows that it is there."""
    place = f"{bucket}/{OBJECT}"
    upload = ["gcloud", "storage", "cp", "--content-type=application/json", str(template), place]
    return [upload, ["gcloud", "storage", "ls", "--long", place]]


def build(folder: Path, image: str = "", bucket: str = "", run: bool = False) -> None:
    """Raises InputError for an image or a bucket that cannot be one."""
    if bool(image) != bool(bucket) or (run and not image):
        raise InputError("--image and --bucket go together, and --run needs both")
    if image and not IMAGE.fullmatch(image):
        raise InputError(f"--image {image!r} is no name with a tag of its own (not latest) or a sha256 digest")
    if bucket and not BUCKET.fullmatch(bucket):
        raise InputError(f"--bucket {bucket!r} is not gs://NAME")
    folder.mkdir(parents=True, exist_ok=True)
    written = folder / "metadata.json"
    written.write_text(as_text(metadata()))
    print(f"{written}: {len(metadata()['parameters'])} parameters")
    if not image:
        return
    template = folder / "pause-encode.json"
    template.write_text(as_text(specification(image)))
    print(f"{template}: {image}")
    for command in commands(template, bucket):
        print(shlex.join(command))
        if run:
            _run(command)


def _run(command: list[str]) -> None:
    if shutil.which(command[0]) is None:
        raise Unavailable(f"there is no `{command[0]}` here: install it, or run the command above elsewhere")
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise InputError(f"`{shlex.join(command)}` failed: {' '.join(done.stderr.split())[-300:]}")
    print(done.stdout, end="")


def keep() -> None:
    """Brings the kept metadata up to the flags."""
    KEPT.write_text(as_text(metadata()))
    print(f"{KEPT.name} is as the flags are; what changed is shown by `git diff`")


def main(argv: list[str] | None = None) -> int:
    parser = Parser(
        prog="python -m infra.dataflow.template",
        description=__doc__,
        epilog="example:\n  python -m infra.dataflow.template \\\n"
        "      --image=europe-west1-docker.pkg.dev/PROJECT/pause/pause-pipeline:0.1.0 --bucket=gs://PROJECT-templates",
    )
    parser.add_argument("--image", default="", help="of launcher and workers, with a tag of its own or a digest")
    parser.add_argument("--bucket", default="", metavar="gs://NAME", help=f"where the template goes, as {OBJECT}")
    parser.add_argument("--run", action="store_true", help="run the commands, which are only printed otherwise")
    parser.add_argument("--keep", action="store_true", help=f"only renew infra/dataflow/{KEPT.name} from the flags")
    parser.add_argument("--out", type=Path, default=FOLDER, metavar="FOLDER", help="%(default)s")
    given = parser.parse_args(argv)
    return exit_code(keep if given.keep else lambda: build(given.out, given.image, given.bucket, given.run))


if __name__ == "__main__":
    sys.exit(main())
