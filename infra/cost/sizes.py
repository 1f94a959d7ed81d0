"""The table of docs/operations.md, made anew from rates and prices: `python -m infra.cost.sizes`."""

from __future__ import annotations

import sys
from pathlib import Path

from common.command import Parser, exit_code
from common.errors import InputError
from infra.cost.__main__ import as_json
from infra.cost.report import markdown

DOCUMENT = Path("docs/operations.md")
BEGIN, END = "<!-- sizes: python -m infra.cost.sizes -->", "<!-- end of sizes -->"
# Updates a company as in the middle one, which has as many companies as the paper's system; questions too, but one a
# second at least.
SIZES = {
    "100 thousand": ["--companies", "1e5", "--updates-per-day", "2.5e3", "--questions-per-second", "1"],
    "8 million": ["--companies", "8e6", "--updates-per-day", "2e5", "--questions-per-second", "20"],
    "100 million": ["--companies", "1e8", "--updates-per-day", "2.5e6", "--questions-per-second", "250"],
}


def table() -> str:
    return markdown({name: as_json(flags) for name, flags in SIZES.items()})


def with_table(text: str, made: str) -> str:
    """The document with this table in place of the one it has."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise InputError(f"the document has no place for the table: a line {BEGIN} and a line {END}")
    return f"{before}{BEGIN}\n\n{made}\n\n{END}{after}"


def rewrite(file: Path) -> None:
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"--document {file} cannot be read: {error.strerror}") from error
    file.write_text(with_table(text, table()), encoding="utf-8")
    print(f"{file} has the table of today's rates and prices")


def main(argv: list[str] | None = None) -> int:
    parser = Parser(prog="python -m infra.cost.sizes", description=__doc__)
    parser.add_argument("--document", type=Path, default=DOCUMENT, help="(default: %(default)s)")
    options = parser.parse_args(argv)
    return exit_code(lambda: rewrite(options.document))


if __name__ == "__main__":
    sys.exit(main())
