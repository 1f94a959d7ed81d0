"""The API and the page: `python -m search --index URL --serving HOST:PORT`."""

from __future__ import annotations

import argparse
import gc
import logging
import os
import signal
import socket
import sys
from contextlib import ExitStack
from pathlib import Path

import uvicorn

from common.command import Parser, exit_code
from common.errors import InputError
from common.hosts import is_local
from common.ports import listen
from index.open import open_index
from pipelines.options import DEMO_INDEX, DEMO_MODEL
from pipelines.services import connect
from search.access.addresses import LOCAL, proxies
from search.access.connections import ConnectionLimits
from search.access.hosts import named
from search.access.secret import VARIABLE
from search.app import create_app
from search.keys import read, readable_by_others
from search.server import Tls, server_config
from search.settings import Settings
from serving.own_server import OwnServer
from serving.tracing.start import start

# Somebody waits: so long a part that is away is tried again, before people are told.
INDEX_SECONDS, ENCODE_SECONDS = 2.0, 5.0

log = logging.getLogger(__name__)


def serve(arguments: argparse.Namespace) -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname).1s %(message)s", stream=sys.stderr)
    logging.getLogger("elastic_transport").setLevel(logging.WARNING)  # a line for every request
    start("pause-search")
    settings, tls = _settings(arguments), _tls(arguments)
    believed = proxies(arguments.proxy) if arguments.proxy else []
    _check_keys(arguments, tls)
    with ExitStack() as stack:
        listening = stack.enter_context(listen("--port", arguments.host, arguments.port))
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else every answer is held back for 40 ms
        index = open_index(arguments.index, retry_seconds=INDEX_SECONDS)
        client = stack.enter_context(connect(_addresses(arguments.serving, stack), ENCODE_SECONDS))
        limits = ConnectionLimits(connections=arguments.connections)
        config = server_config(create_app(index, client, settings), limits, believed, tls)
        host, port = arguments.host, listening.getsockname()[1]
        address = f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"
        print(f"{address} is the page, /docs the API; Ctrl-C ends it", flush=True)
        # What is there now stays: to look through it for garbage again and again takes 100 ms each time.
        gc.freeze()
        uvicorn.Server(config).run([listening])


def _settings(arguments: argparse.Namespace) -> Settings:
    return Settings(
        keys=arguments.keys,
        rate=arguments.rate,
        burst=arguments.burst,
        hosts=(*LOCAL, arguments.host, *(named(arguments.hosts) if arguments.hosts else ())),
        any_address=not is_local(arguments.host),
        feedback_bytes=arguments.feedback_bytes,
        secret_file=os.environ.get(VARIABLE),
        log_queries=arguments.log_queries,
    )


def _tls(arguments: argparse.Namespace) -> Tls | None:
    certificate, key = arguments.tls_certificate, arguments.tls_key
    if (certificate is None) != (key is None):
        raise InputError("--tls_certificate and --tls_key go together; one of them was given")
    return Tls(certificate, key) if certificate else None


def _check_keys(arguments: argparse.Namespace, tls: Tls | None) -> None:
    """Before anything starts: the file is whole, and keys are not to cross a network for all to read."""
    far = not is_local(arguments.host)
    if arguments.keys is None:
        if far:
            log.warning("anybody who reaches %s may ask and answer; --keys FILE asks for a key", arguments.host)
        return
    path = Path(arguments.keys)
    read(path)
    if readable_by_others(path):
        log.warning("others may read who has a key in %s; `chmod 600 %s` makes it private", path, path)
    if far and not tls and not arguments.behind_tls_proxy:
        raise InputError(
            f"--keys with --host {arguments.host} would let keys cross the network in plain http; give "
            "--tls_certificate and --tls_key, or --behind_tls_proxy where a proxy in front ends TLS"
        )


def _addresses(given: str | None, stack: ExitStack) -> tuple[str, ...]:
    """Without any: a server of our own, for the model of `make demo`."""
    if given:
        return tuple(given.split(","))
    own = OwnServer(DEMO_MODEL, compiled=False)
    own.contract()  # raises where there is none, in words that help
    stack.enter_context(own.stopped_after())
    print("starting the model's server ...", file=sys.stderr, flush=True)
    return (own.address(),)


def _parser() -> Parser:
    parser = Parser(
        prog="python -m search",
        description="Serve the search API and its page. Without flags: on what `make demo` built, with a server of\n"
        "the model started beside it.",
        epilog="example:\n"
        "  python -m search --index http://localhost:9200/companies --serving localhost:8500 --port 8000\n"
        f"{VARIABLE} names a file of the secret that several services share; else it is kept beside the index.",
    )
    parser.add_argument(
        "--index", default=DEMO_INDEX, metavar="URL", help="a path or http(s)://host:9200/alias; %(default)s"
    )
    parser.add_argument("--serving", metavar="HOST:PORT,...", help="gRPC; default: started beside")
    parser.add_argument("--host", default="127.0.0.1", help="where to listen; %(default)s")
    parser.add_argument("--port", type=int, default=8000, help="%(default)s; 0 takes a free one")
    parser.add_argument("--keys", metavar="FILE", help="only with an API key of this file; see python -m search.keys")
    parser.add_argument(
        "--rate", type=float, default=Settings.rate, metavar="N", help="requests a second of one caller; 0: any"
    )
    parser.add_argument("--burst", type=int, default=Settings.burst, metavar="N", help="and at once; %(default)s")
    parser.add_argument("--proxy", metavar="ADDRESS,...", help="believe these proxies about who asks")
    parser.add_argument(
        "--feedback_bytes",
        type=int,
        default=Settings.feedback_bytes,
        metavar="N",
        help="that lists and answers may fill; %(default)s",
    )
    parser.add_argument(
        "--hosts", metavar="NAME,...", help="names people reach it by, besides localhost and --host; * is any"
    )
    parser.add_argument(
        "--connections", type=_count, default=ConnectionLimits.connections, metavar="N", help="at once; %(default)s"
    )
    parser.add_argument("--tls_certificate", type=Path, metavar="FILE", help="PEM, with its chain: serve https")
    parser.add_argument("--tls_key", type=Path, metavar="FILE", help="PEM, the certificate's key, without password")
    parser.add_argument(
        "--behind_tls_proxy", action="store_true", help="a proxy in front takes keys over https and passes them on"
    )
    parser.add_argument("--log_queries", action="store_true", help="write down what people look for")
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"takes a number from 1, got {text!r}")
    return int(text)


def main(argv: list[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    try:
        return exit_code(lambda: serve(arguments))
    except KeyboardInterrupt:  # the way a server ends
        return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # uvicorn raises it again when all is answered
    sys.exit(main())
