"""The real servers on this machine, for people: `python -m infra.local up elasticsearch`. Ctrl-C ends them."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack

from common.command import Parser, exit_code
from infra.local.elasticsearch import Elasticsearch
from infra.local.fake_gcs import FakeGcs
from infra.local.prism import Prism
from infra.local.processes import Process
from infra.local.pubsub import PubSub

SERVERS: dict[str, Callable[[], Process]] = {
    "elasticsearch": Elasticsearch,
    "gcs": FakeGcs,
    "prism": Prism,
    "pubsub": PubSub,
}
# As whoever uses it wants it: a variable to export, flags to add.
TOLD = {
    "gcs": "FSSPEC_GS_TOKEN=anon STORAGE_EMULATOR_HOST={}",
    "prism": "--runner=PrismRunner --job_endpoint={}",
    "pubsub": "PUBSUB_EMULATOR_HOST={}",
}


def up(names: list[str]) -> None:
    """Starts them, says where they are, and keeps them until interrupted."""
    with ExitStack() as running:
        for name in dict.fromkeys(names):
            print(f"starting {name} ...", file=sys.stderr, flush=True)
            server = running.enter_context(SERVERS[name]())
            print(TOLD.get(name, f"{name} {{}}").format(server.address), flush=True)
        print("ready; Ctrl-C ends them, and their data goes with them", file=sys.stderr, flush=True)
        threading.Event().wait()


def _parser() -> Parser:
    parser = Parser(
        prog="python -m infra.local",
        description="Starts real servers on free ports of this machine; their data is in build/local while they run.",
        epilog="example:\n  python -m infra.local up elasticsearch pubsub",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="up")
    starting = commands.add_parser("up", help="start, say where, and keep them until Ctrl-C")
    starting.add_argument("servers", nargs="+", choices=sorted(SERVERS), metavar="SERVER", help=", ".join(SERVERS))
    return parser


def main(argv: list[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that both ways of ending it are one
    try:
        return exit_code(lambda: up(arguments.servers))
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main())
