"""`python -m benchmarks NAME`: measures a ratio against a baseline in the same run, and prints it as a table."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks import (
    encode,
    index,
    rollback,
    search,
    serving,
    stream,
    train,
)
from benchmarks.compare import command as compare
from benchmarks.hostile import command as hostile
from benchmarks.measures.data import DEFAULT, write_result
from benchmarks.quality import loop, questions, reproduce
from benchmarks.soak import command as soak
from benchmarks.soak.check.findings import KINDS
from common.command import Parser, exit_code

BENCHMARKS: dict[str, Callable[..., dict]] = {
    "compare": compare.run,
    "encode": encode.run,
    "hostile": hostile.run,
    "index": index.run,
    "loop": loop.run,
    "questions": questions.run,
    "reproduce": reproduce.run,
    "rollback": rollback.run,
    "search": search.run,
    "serving": serving.run,
    "soak": soak.run,
    "stream": stream.run,
    "train": train.run,
}


def main(argv: list[str] | None = None) -> int:
    arguments = vars(_parser().parse_args(argv))
    name, as_json = arguments.pop("name"), arguments.pop("json")
    return exit_code(lambda: measure(name, as_json, **arguments))


def _parser() -> Parser:
    common = Parser(add_help=False)
    common.add_argument("--data", type=Path, default=DEFAULT, help=f"the folder of data sets (default: {DEFAULT})")
    common.add_argument("--json", action="store_true", help="JSON instead of the table")
    parser = Parser(
        prog="python -m benchmarks",
        description="Measure against a baseline, alternating, in one run. Leave the machine alone meanwhile.",
        epilog="example:\n  python -m benchmarks train --data ../shared/data",
    )
    names = parser.add_subparsers(dest="name", required=True, metavar="NAME")
    one = names.add_parser("compare", parents=[common], help="this tree against another commit, side by side")
    one.add_argument("what", choices=tuple(compare.COMPARED))
    one.add_argument("--before", required=True, metavar="REV", help="the other commit")
    one.add_argument("--rounds", type=_count, default=compare.ROUNDS, help="(default: %(default)s)")
    one = names.add_parser("encode", parents=[common], help="the pipeline against the bare encoder and Beam's own")
    one.add_argument("--rounds", type=_count, default=encode.ROUNDS, help="(default: %(default)s)")
    one.add_argument("--texts", type=_count, default=encode.TEXTS, help="in each round (default: %(default)s)")
    one.add_argument("--peers", type=Path, default=serving.PEERS, help="their environment (default: %(default)s)")
    one = names.add_parser("hostile", parents=[common], help="malformed and hostile requests to the servers")
    one.add_argument("--requests", type=_count, default=hostile.REQUESTS, help="(default: %(default)s)")
    one.add_argument("--seed", type=int, default=hostile.SEED, help="(default: %(default)s)")
    one = names.add_parser("index", parents=[common], help="writing against parallel_bulk, and what searches find")
    one.add_argument("--rounds", type=_count, default=index.ROUNDS, help="(default: %(default)s)")
    one.add_argument("--documents", type=_count, help="of so many listed companies (default: all)")
    one.add_argument("--vectors", type=Path, help="theirs as .npy, in order (default: encoded once, and kept)")
    one = names.add_parser("loop", parents=[common], help="from answers on shown lists to a better model")
    one.add_argument("--lists", type=_count, default=loop.LISTS, help="(default: %(default)s)")
    one = names.add_parser("questions", parents=[common], help="whether what people type finds the right company first")
    one.add_argument("--sets", type=Path, default=questions.SETS, help="of questions (default: %(default)s)")
    one.add_argument("--model", type=Path, default=Path(questions.DEMO_MODEL), help="exported (default: %(default)s)")
    names.add_parser("reproduce", parents=[common], help="the paper's tables and the company figures")
    one = names.add_parser("rollback", parents=[common], help="versions withdrawn while they load, under constant load")
    one.add_argument("--rounds", type=_count, default=rollback.ROUNDS, help="(default: %(default)s)")
    one = names.add_parser("search", parents=[common], help="the search service against the stores' own answers")
    one.add_argument("--questions", type=_count, default=search.QUESTIONS, help="(default: %(default)s)")
    one.add_argument("--minutes", type=float, default=search.MINUTES, help="of many people (default: %(default)s)")
    one = names.add_parser("serving", parents=[common], help="the embedded server against the same model in process")
    one.add_argument("--rounds", type=_count, default=serving.ROUNDS, help="(default: %(default)s)")
    one.add_argument("--texts", type=_count, default=serving.TEXTS, help="in each round (default: %(default)s)")
    one.add_argument("--peers", type=Path, default=serving.PEERS, help="their environment (default: %(default)s)")
    one = names.add_parser("soak", parents=[common], help="faults by the hundred: nothing lost, revived or mixed")
    one.add_argument("--minutes", type=float, default=soak.MINUTES, help="(default: %(default)s)")
    one.add_argument("--seed", type=int, default=soak.SEED, help="(default: %(default)s)")
    one.add_argument("--searches", type=_count, default=soak.SEARCHES, help="a second (default: %(default)s)")
    one.add_argument("--faults", dest="which", choices=(soak.ALL, soak.MODELS), default=soak.ALL, help="(default: all)")
    one.add_argument("--plant", choices=KINDS[:4], default="", help="a bug of this kind, to see that it is found")
    one.add_argument("--out", type=Path, default=soak.FOLDER, help="for picture and evidence (default: %(default)s)")
    one = names.add_parser("stream", parents=[common], help="from a published message to a company that can be found")
    one.add_argument("--messages", type=_count, default=stream.MESSAGES, help="(default: %(default)s)")
    names.add_parser("train", parents=[common], help="training speed against the public reference's way of feeding")
    return parser


def _count(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"a number of at least 1 is expected, got {text!r}")
    return value


def measure(name: str, as_json: bool, **arguments: object) -> None:
    result = BENCHMARKS[name](**arguments)
    path = write_result(name, result)
    print(json.dumps(result, indent=2) if as_json else table(result))
    print(f"also in {path}", file=sys.stderr)


def table(result: dict[str, dict]) -> str:
    """One column a case, one row a figure; where there are more cases than figures, the other way round."""
    cases = list(result)
    names = list(dict.fromkeys(name for case in cases for name in result[case]))
    rows = [["", *cases], *([name, *(str(result[case].get(name, "")) for case in cases)] for name in names)]
    if len(cases) > len(names):
        rows = [list(column) for column in zip(*rows, strict=True)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


if __name__ == "__main__":
    sys.exit(main())
