"""`python -m benchmarks NAME`: measures a ratio against a baseline in the same run, and prints it as a table."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks import reproduce, train
from benchmarks.data import DEFAULT, MissingData, write_result

BENCHMARKS = {"reproduce": reproduce.run, "train": train.run}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure against a baseline, alternating, in one run. Leave the machine alone meanwhile.",
        epilog="example:\n  python -m benchmarks train --data ../shared/data",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("name", choices=sorted(BENCHMARKS))
    parser.add_argument("--data", type=Path, default=DEFAULT, help=f"the folder of data sets (default: {DEFAULT})")
    parser.add_argument("--json", action="store_true", help="JSON instead of the table")
    arguments = parser.parse_args(argv)
    try:
        result = BENCHMARKS[arguments.name](arguments.data)
        path = write_result(arguments.name, result)
    except MissingData as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(json.dumps(result, indent=2) if arguments.json else table(result))
    print(f"also in {path}", file=sys.stderr)
    return 0


def table(result: dict[str, dict]) -> str:
    """One column a case, one row a figure."""
    cases = list(result)
    names = list(dict.fromkeys(name for case in cases for name in result[case]))
    rows = [["", *cases], *([name, *(str(result[case].get(name, "")) for case in cases)] for name in names)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(cases) + 1)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


if __name__ == "__main__":
    sys.exit(main())
