"""Publishes a version to where servers look, or takes it back: `python -m serving.publish --from DIR --to BASE`."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tqdm import tqdm

from common.command import Parser, exit_code
from common.errors import InputError
from model.contract import MODEL_NAME
from model.errors import ExportError
from serving.endpoint.withdrawal import wait_until_gone
from serving.storage.base import FACTS_FILE, SAVED_MODEL, Base, StorageError, contents
from serving.storage.local import Local
from serving.storage.open import open_base

KEEP = 3


def publish(source: Path, base: Base) -> int:
    """The number under which the version in `source` is served from now on; it appears proven and complete."""
    total = sum(contents(source).values())
    require_proof(source)
    # A small copy is over before the bar would be drawn.
    with tqdm(
        total=total, unit="B", unit_scale=True, desc="copying", file=sys.stderr, disable=None, leave=False, delay=1
    ) as bar:
        return base.add(source, bar.update)


def rollback(base: Base) -> tuple[list[int], int]:
    """The versions withdrawn and the newest that is left: the next older one that is complete."""
    versions = base.versions()
    if not versions:
        raise StorageError(f"{base.path} holds no version to roll back")
    older = [version for version in versions[:-1] if not base.incomplete(version)]
    if not older:
        raise StorageError(f"{base.path} holds no complete version older than {versions[-1]}: nothing to go back to")
    withdrawn = [version for version in versions if version > older[-1]]
    for version in withdrawn:  # ascending: a broken one in between must never be the newest
        base.withdraw(version)
    return withdrawn, older[-1]


def require_proof(directory: Path) -> None:
    from serving.server.models.proof import prove

    prove(directory)


def _find(spec: str, scratch: Path) -> Path:
    """The local directory of the version that --from names, itself or by its base path."""
    base = open_base(spec)
    if isinstance(base, Local):
        if not base.directory.is_dir():
            raise StorageError(f"--from {spec}: no such directory")
        if any((base.directory / name).exists() for name in (SAVED_MODEL, FACTS_FILE)):
            return base.directory
    versions = base.versions()
    if versions:
        return base.fetch(versions[-1], scratch)
    parent, _, name = base.path.rpartition("/")
    if not isinstance(base, Local) and name.isdecimal() and int(name) in open_base(parent).versions():
        return open_base(parent).fetch(int(name), scratch)
    raise StorageError(f"--from {spec} holds neither a SavedModel nor numbered versions; model.export writes both")


def _publish(spec: str, to: str, keep: int) -> None:
    base = open_base(to)
    with tempfile.TemporaryDirectory(prefix="publish-") as scratch:
        try:
            number = publish(_find(spec, Path(scratch) / "version"), base)
        except ExportError as error:
            raise ExportError(f"--from {spec} must not be served: {error}; nothing was published") from error
    print(base.location(number), flush=True)
    try:
        for name in base.prune(keep):
            print(f"removed {base.path}/{name}", file=sys.stderr)
    except (OSError, InputError) as error:
        raise StorageError(f"version {number} is published, but older ones could not be removed: {error}") from error


def _rollback(to: str, servers: Sequence[str], model: str) -> None:
    base = open_base(to)
    withdrawn, newest = rollback(base)
    gone = " and ".join(str(version) for version in withdrawn)
    print(f"withdrew {gone}; the newest version is now {base.location(newest)}", flush=True)
    if servers:
        wait_until_gone(servers, model, withdrawn)


def _work(arguments: argparse.Namespace) -> None:
    try:
        if arguments.rollback:
            _rollback(arguments.to, arguments.serving, arguments.model_name)
        else:
            _publish(arguments.source, arguments.to, arguments.keep or KEEP)
    except OSError as error:
        raise StorageError(f"--to {arguments.to} cannot be used: {error}") from error


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of versions, 1 or more")
    return int(text)


def _parser() -> Parser:
    parser = Parser(
        prog="python -m serving.publish",
        description="Prove that a version reproduces its golden vectors, copy it to a base path that servers watch,\n"
        "and give it the next number there; or take the newest version back.",
        epilog="examples:\n"
        "  python -m serving.publish --from build/serving/pause --to gs://bucket/models/pause\n"
        "  python -m serving.publish --rollback --to gs://bucket/models/pause\n"
        "a version rolled back is kept as <number>.withdrawn; --from that directory publishes it again",
    )
    parser.add_argument(
        "--from", dest="source", metavar="DIR", help="a version of model.export, or a base path: its newest version"
    )
    parser.add_argument("--to", required=True, metavar="BASE", help="a local path or the URL of an object store")
    parser.add_argument(
        "--keep", type=_at_least_one, metavar="N", help=f"versions to leave there, the new one included ({KEEP})"
    )
    parser.add_argument("--rollback", action="store_true", help="withdraw the newest version")
    parser.add_argument(
        "--serving",
        type=lambda text: text.split(","),
        default=[],
        metavar="HOST:PORT,...",
        help="with --rollback: servers to wait for, until none of them answers by what was withdrawn",
    )
    parser.add_argument("--model_name", default=MODEL_NAME, help="what they call the model (default: %(default)s)")
    return parser


def main(argv: list[str] | None = None) -> int:
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.rollback == bool(arguments.source) or (arguments.rollback and arguments.keep):
        parser.error("give either --from, with or without --keep, or --rollback")
    if arguments.serving and not arguments.rollback:
        parser.error("--serving goes with --rollback")
    try:
        return exit_code(lambda: _work(arguments))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # tidies up as after Ctrl-C
    sys.exit(main())
