"""Every file of a deployment held against a real validator and against the code: `python -m infra.checks`."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from common.command import Parser, exit_code
from common.errors import InputError
from infra.checks import compose, dataflow, documents, images, kubernetes, monitoring, supply, terraform
from infra.checks.check import Check
from infra.local.processes import Unavailable

ROOT = Path(__file__).parents[2]
AREAS = (images, compose, kubernetes, terraform, dataflow, monitoring, supply, documents)
CHECKS: list[Check] = [check for area in AREAS for check in area.CHECKS]


class Findings(InputError):
    """Something is wrong with what would be deployed."""


def run(checks: list[Check], root: Path = ROOT) -> None:
    """Raises Findings where a check has any, or under CI cannot be run; each is told as soon as it is done."""
    wrong, not_run = 0, []
    for check in checks:
        began = time.monotonic()
        try:
            found = check.run(root)
            verdict = f"{len(found)} wrong" if found else "ok"
            wrong += len(found)
        except Unavailable as error:
            found, verdict = [str(error)], "not run"
            not_run.append(check.name)
        print(f"{check.name:<40} {verdict:<10} {time.monotonic() - began:6.1f} s", flush=True)
        for line in found:
            print(f"  {line}", flush=True)
    if not_run:
        print(f"not run, so nothing is known of: {', '.join(not_run)}", flush=True)
    if not_run and os.environ.get("CI") == "true":
        raise Findings(f"{len(not_run)} checks could not be run")
    if wrong:
        raise Findings(f"{wrong} findings; each names its file above")


def chosen(names: list[str], full: bool) -> list[Check]:
    """All quick ones, or those that are named; the slow ones too where all are wanted."""
    known = {check.name: check for check in CHECKS}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InputError(f"no check is called {', '.join(unknown)}; there are {', '.join(known)}")
    return [known[name] for name in names] or [check for check in CHECKS if full or not check.slow]


def main(argv: list[str] | None = None) -> int:
    parser = Parser(
        prog="python -m infra.checks",
        description=__doc__,
        epilog="example:\n  python -m infra.checks --full",
    )
    parser.add_argument("names", nargs="*", metavar="CHECK", help=", ".join(check.name for check in CHECKS))
    parser.add_argument("--full", action="store_true", help="also those that build or start something for minutes")
    options = parser.parse_args(argv)
    return exit_code(lambda: run(chosen(options.names, options.full)))


if __name__ == "__main__":
    sys.exit(main())
