"""`python -m benchmarks NAME`: measures a ratio against a baseline in the same run, and prints it as a table."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks import reproduce, train
from benchmarks.data import DEFAULT, write_result
from model.command import Parser, answer

BENCHMARKS = {"reproduce": reproduce.run, "train": train.run}


def main(argv: list[str] | None = None) -> int:
    parser = Parser(
        prog="python -m benchmarks",
        description="Measure against a baseline, alternating, in one run. Leave the machine alone meanwhile.",
        epilog="example:\n  python -m benchmarks train --data ../shared/data",
    )
    parser.add_argument("name", choices=sorted(BENCHMARKS))
    parser.add_argument("--data", type=Path, default=DEFAULT, help=f"the folder of data sets (default: {DEFAULT})")
    parser.add_argument("--json", action="store_true", help="JSON instead of the table")
    arguments = parser.parse_args(argv)
    return answer(lambda: measure(arguments.name, arguments.data, arguments.json))


def measure(name: str, data: Path, as_json: bool) -> None:
    result = BENCHMARKS[name](data)
    path = write_result(name, result)
    print(json.dumps(result, indent=2) if as_json else table(result))
    print(f"also in {path}", file=sys.stderr)


def table(result: dict[str, dict]) -> str:
    """One column a case, one row a figure."""
    cases = list(result)
    names = list(dict.fromkeys(name for case in cases for name in result[case]))
    rows = [["", *cases], *([name, *(str(result[case].get(name, "")) for case in cases)] for name in names)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(cases) + 1)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


if __name__ == "__main__":
    sys.exit(main())
