"""A new model without downtime: `python -m pipelines.reindex --index URL --serving HOST:PORT`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass

from common.command import Parser, exit_code
from common.errors import InputError
from index.base import Index, Spec
from index.errors import IndexUnusable
from index.open import open_index
from model.contract import Contract
from pipelines import preflight
from pipelines.io.dead_letters import DeadLetter, DeadLetterFiles
from pipelines.options import BATCH_SIZE, DEMO_INDEX, IN_FLIGHT, TOPIC, adding, addresses, letters_beside
from pipelines.reindex.move import ModelNeeded, Move
from pipelines.reindex.swap import swap
from pipelines.services import Services, Session, connect
from serving.client import EmbeddingClient
from serving.endpoint.channel import ModelNotServed
from serving.own_server import OwnServer
from serving.tracing.start import start

WORTH_COMPILING = 5000  # companies: compiling takes longer than encoding fewer
DEADLINE = 300.0  # seconds for which an endpoint that does not answer is asked again


@dataclass(frozen=True)
class Options:
    """What a move is told; a flag each."""

    index: str = DEMO_INDEX
    serving: tuple[str, ...] = ()  # none: the embedded server, started for the run
    dead_letters: str = ""  # beside the index
    max_dead: float = 0.01  # share of the companies that may be missing afterwards
    batch_size: int = BATCH_SIZE
    in_flight: int = IN_FLIGHT
    rollback: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "dead_letters", self.dead_letters or letters_beside(self.index))
        for name in ("batch_size", "in_flight"):
            if getattr(self, name) < 1:
                raise InputError(f"--{name} must be at least 1, got {getattr(self, name)}")
        if not 0 <= self.max_dead <= 1:
            raise InputError(f"--max_dead is a share from 0 to 1, got {self.max_dead}")
        if TOPIC.fullmatch(self.dead_letters):
            raise InputError(f"--dead_letters takes a folder here, got the topic {self.dead_letters}")


def run(options: Options) -> str:
    """What was done, for people."""
    index = open_index(options.index)
    if options.rollback:
        return go_back(index, options)
    compiled = index.status().live >= WORTH_COMPILING
    return move(index, preflight.reach(options.serving, options.index, compiled), options)


def move(index: Index, services: Services, options: Options) -> str:
    """What was done, for people."""
    began, live, contract = time.monotonic(), index.fixed(), services.contract
    if live.spec().model == contract.fingerprint:
        return f"{options.index} has model {contract.fingerprint} already: nothing to do"
    successor = index.successor(Spec(contract.fingerprint, contract.dimension))
    with (
        live.moving(successor) as holds,
        _connected(services) as connect,
        _kept(options.dead_letters) as keep,
    ):
        moving = Move(live, successor, connect, contract, keep, holds, **_bounds(live, options))
        status = swap(moving, successor.go_live)
    return (
        f"{status.live:,} companies and {status.tombstones:,} tombstones moved to model {contract.fingerprint}, "
        f"{moving.encoded:,} encoded; {time.monotonic() - began:.1f} s; index {options.index}; --rollback goes back"
        + _missing(moving, options)
    )


def go_back(index: Index, options: Options) -> str:
    """A move to the index from before the last one: what was written since is carried, and what was deleted is gone."""
    live, former = index.fixed(), index.former()
    if former is None:
        raise IndexUnusable(f"{options.index} has no index before {live.status().physical} to go back to")
    model = former.spec().model
    with (
        live.moving(former) as holds,
        _served(options.serving, model) as (connect, contract, why_not),
        _kept(options.dead_letters) as keep,
    ):
        moving = Move(live, former, connect, contract, keep, holds, **_bounds(live, options))
        try:
            status = swap(moving, live.rollback, back=True)
        except ModelNeeded as company:
            raise InputError(
                f"company {company} has another text than model {model} has encoded for {options.index}: give "
                f"--serving HOST:PORT of an endpoint that serves that model{why_not}; nothing was changed for who "
                "searches"
            ) from company
    return (
        f"{options.index} answers from {status.physical} again, with model {model}: {status.live:,} companies, "
        f"{moving.written:,} of them brought up to date, {moving.encoded:,} encoded" + _missing(moving, options)
    )


def _bounds(live: Index, options: Options) -> dict[str, int]:
    allowed = int(options.max_dead * live.status().live)
    return {"max_dead": allowed, "batch_size": options.batch_size, "in_flight": options.in_flight}


def _missing(moving: Move, options: Options) -> str:
    number = moving.missing().ids
    return f"\n{number:,} companies are missing, their dead letters are in {options.dead_letters}" if number else ""


@contextmanager
def _served(
    serving: tuple[str, ...], model: str
) -> Iterator[tuple[Callable[[], EmbeddingClient], Contract | None, str]]:
    """How to ask for that model, its contract, and, where it is not to be had, why."""
    if not serving:
        yield _nobody, None, ""
        return
    contract, why_not = None, ""
    with connect(serving, preflight.ANSWER_SECONDS) as client:
        try:
            contract = client.contract(model)
        except ModelNotServed as error:
            why_not = f" ({error})"
    with connect(serving, DEADLINE) as client:
        yield lambda: client, contract, why_not


def _nobody() -> EmbeddingClient:
    raise AssertionError("nothing is encoded without a contract")


@contextmanager
def _connected(services: Services) -> Iterator[Callable[[], EmbeddingClient]]:
    """An own server is stopped in the end."""
    own = services.serving
    with own.stopped_after() if isinstance(own, OwnServer) else nullcontext(), closing(Session(services)) as session:
        yield session.client


@contextmanager
def _kept(folder: str) -> Iterator[Callable[[DeadLetter], object]]:
    """One file for all dead letters, in its place when the run ends, well or not."""
    files = DeadLetterFiles(folder)
    files.start_bundle()
    try:
        yield files.process
    finally:
        files.finish_bundle()


def _parser() -> Parser:
    parser = Parser(
        prog="python -m pipelines.reindex",
        description="Moves an index to the model served at --serving. Until all is encoded and checked, the index\n"
        "answers with the former model; then it changes in one step. Interrupted, the same command goes on.\n"
        "--rollback moves it back to the index from before, with all that was written and deleted since; texts\n"
        "that are new to the former model are encoded by it, at an endpoint that still serves it.",
        epilog="Passwords and keys come from the environment (PAUSE_ES_API_KEY, ...).",
    )
    add = adding(parser, Options)
    add("--index", metavar="URL", help="a path or http(s)://host:9200/alias; %(default)s")
    add("--serving", type=addresses, metavar="HOST:PORT,...", help="gRPC; default: started for the run")
    add("--rollback", action="store_true", help="back to the index from before the last move; --serving as needed")
    add("--dead_letters", metavar="PATH", help="a folder; default: beside the index")
    add("--max_dead", type=float, metavar="SHARE", help="of companies, to go live without; %(default)s")
    add("--batch_size", type=int, metavar="N", help="companies read and written at once; %(default)s")
    add("--in_flight", type=int, metavar="N", help="batches encoded at a time; %(default)s")
    return parser


def main(argv: list[str] | None = None) -> int:
    given = vars(_parser().parse_args(argv))

    def work() -> None:
        start("pause-reindex")
        print(run(Options(**given)))

    return exit_code(work)


if __name__ == "__main__":
    sys.exit(main())
