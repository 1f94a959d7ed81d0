"""What is in an index, a new empty one, and the end of its tombstones and of what moves left behind:
`python -m index status|create|purge|drop`."""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import asdict
from datetime import UTC, datetime

from common.command import Parser, exit_code
from index.base import Spec, Status
from index.open import open_index

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def _status(arguments: argparse.Namespace) -> None:
    status = open_index(arguments.index).status()
    if arguments.json:
        print(json.dumps({"index": arguments.index, **asdict(status)}))
        return
    for label, value in _lines(arguments.index, status):
        print(f"{label:<15} {value}")


def _lines(url: str, status: Status) -> list[tuple[str, str]]:
    return [
        ("index", f"{url} ({status.physical})"),
        ("model", f"{status.model}, {status.dimension} numbers a vector"),
        ("companies", f"{status.live:,}"),
        ("tombstones", f"{status.tombstones:,}"),
        ("newest version", _time(status.newest_version)),
        ("newest write", _time(status.newest_write)),
        ("created", _time(status.created_at)),
        ("size", f"{status.bytes / 1e6:,.1f} MB"),
        ("vector search", status.vectors),
    ]


def _time(microseconds: int | None) -> str:
    if microseconds is None:
        return "none"
    try:
        return datetime.fromtimestamp(microseconds / 1e6, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):  # versions need not be times
        return str(microseconds)


def _create(arguments: argparse.Namespace) -> None:
    if arguments.serving:
        from serving.client import EmbeddingClient

        with EmbeddingClient(arguments.serving.split(",")) as client:
            contract = client.contract()
        spec = Spec(contract.fingerprint, contract.dimension)
    else:
        spec = Spec(arguments.model, arguments.dimension)
    status = open_index(arguments.index, create=spec).status()
    print(f"{arguments.index} ({status.physical}) takes vectors of model {status.model}; it holds {status.live:,}")


def _purge(arguments: argparse.Namespace) -> None:
    removed = open_index(arguments.index).purge(arguments.older_than)
    print(f"removed {removed:,} tombstones from {arguments.index}")


def _drop(arguments: argparse.Namespace) -> None:
    index = open_index(arguments.index)
    dropped = index.drop_former()
    kept = index.status().physical
    said = f"removed {', '.join(dropped)}" if dropped else "nothing to remove"
    print(f"{said}; {arguments.index} answers from {kept}" + (", and has none to roll back to" if dropped else ""))


def _duration(text: str) -> int:
    match = re.fullmatch(r"(\d{1,9})([smhd])", text, re.ASCII)
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration such as 30d, 12h, 90m or 45s")
    return int(match[1]) * _SECONDS[match[2]]


def _parser() -> Parser:
    parser = Parser(
        prog="python -m index",
        description="An index is an embedded one, by its path or as lance:///path, or an Elasticsearch alias, as\n"
        "http(s)://host:9200/alias.",
        epilog="examples:\n"
        "  python -m index status --index build/index\n"
        "  python -m index create --index build/index --serving localhost:8500\n"
        "  python -m index purge --index build/index --older-than 30d\n"
        "  python -m index drop --former --index build/index",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="status|create|purge|drop")
    status = commands.add_parser("status", help="what is in it: companies, tombstones, model, freshness, size")
    status.add_argument("--json", action="store_true", help="one JSON object; times in microseconds")
    status.set_defaults(work=_status)
    create = commands.add_parser("create", help="an empty one for a model; nothing is done where there is one")
    create.add_argument("--serving", metavar="HOST:PORT", help="ask the model served there for its contract")
    create.add_argument("--model", metavar="FINGERPRINT", help="or say it: 16 hex digits, and --dimension")
    create.add_argument("--dimension", type=int, metavar="D", help="numbers a vector")
    create.set_defaults(work=_create)
    purge = commands.add_parser(
        "purge", help="remove old tombstones; updates that are older still could revive those companies"
    )
    purge.add_argument(
        "--older-than",
        type=_duration,
        required=True,
        metavar="TIME",
        help="since written, such as 30d or 12h",
    )
    purge.set_defaults(work=_purge)
    drop = commands.add_parser("drop", help="remove what moves to other models left behind; no rollback after that")
    drop.add_argument(
        "--former", action="store_true", required=True, help="every index of the address but the live one"
    )
    drop.set_defaults(work=_drop)
    for command in (status, create, purge, drop):
        command.add_argument(
            "--index", required=True, metavar="URL", help="a path, lance:///path or http(s)://host/alias"
        )
    return parser


def main(argv: list[str] | None = None) -> int:
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.command == "create" and bool(arguments.serving) == bool(arguments.model and arguments.dimension):
        parser.error("create takes either --serving, or --model and --dimension")
    return exit_code(lambda: arguments.work(arguments))


if __name__ == "__main__":
    sys.exit(main())
