"""A new model without downtime: `python -m pipelines.reindex --index URL --serving HOST:PORT`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from tqdm import tqdm

from index.base import Index, Spec
from index.open import open_index
from model.command import Parser, answer
from model.errors import InputError
from pipelines import ready
from pipelines.dead_letter import DeadLetter
from pipelines.letters import LetterFiles
from pipelines.move import Move, Pass
from pipelines.options import DEMO_DEAD_LETTERS, DEMO_INDEX, TOPIC, addresses
from pipelines.own_server import OwnServer
from pipelines.services import Connection, Services

WORTH_COMPILING = 5000  # companies: compiling takes longer than encoding fewer
SAME = 0.99  # cosine; two texts as close as that find each other as well as themselves


class CheckFailed(InputError):
    """The new index is not what it should be; the address still answers from the former one."""


@dataclass(frozen=True)
class Options:
    index: str = DEMO_INDEX
    serving: tuple[str, ...] = ()  # none: the embedded server, started for the run
    dead_letters: str = DEMO_DEAD_LETTERS
    max_dead: float = 0.01  # share of the companies that may be missing afterwards
    batch_size: int = 512
    in_flight: int = 3
    rollback: bool = False

    def __post_init__(self) -> None:
        for name in ("batch_size", "in_flight"):
            if getattr(self, name) < 1:
                raise InputError(f"--{name} must be at least 1, got {getattr(self, name)}")
        if not 0 <= self.max_dead <= 1:
            raise InputError(f"--max_dead is a share from 0 to 1, got {self.max_dead}")
        if TOPIC.fullmatch(self.dead_letters):
            raise InputError(f"--dead_letters takes a folder here, got the topic {self.dead_letters}")
        if self.rollback and self.serving:
            raise InputError("--rollback encodes nothing: give it without --serving")


def run(options: Options) -> str:
    """What was done, for people."""
    index = open_index(options.index)
    if options.rollback:
        physical = index.rollback()
        return (
            f"{options.index} answers from {physical} again, with model {index.spec().model}; "
            "what was written since it was replaced is not in it"
        )
    compiled = index.status().live >= WORTH_COMPILING
    return move(index, ready.reach(options.serving, options.index, compiled), options)


def move(index: Index, services: Services, options: Options) -> str:
    """What was done, for people."""
    began, status, contract = time.monotonic(), index.status(), services.contract
    moved = status.model == contract.fingerprint
    successor = index if moved else index.successor(Spec(contract.fingerprint, contract.dimension))
    with _connected(services) as connect, _kept(options.dead_letters) as bury:
        moving = Move(
            successor,
            connect,
            contract,
            bury,
            max_dead=int(options.max_dead * status.live),
            batch_size=options.batch_size,
            in_flight=options.in_flight,
        )
        if not moved:
            _fill(moving, index, successor, options.batch_size)
            successor.go_live()
        # Whoever wrote until this moment wrote into the former index, and is refused from now on. Of a move that died
        # here, older documents than the new index are in it: one that is not was deleted since, and must not come back.
        former = index.former()
        done = _carry(moving, former, "last writes", status.created_at if moved else 0) if former else Pass()
    if moved and not done.written and not done.dead:
        return f"{options.index} has model {status.model} already: nothing to do"
    return (
        f"{done.companies:,} companies and {done.tombstones:,} tombstones moved to model {contract.fingerprint}, "
        f"{moving.encoded:,} encoded; {time.monotonic() - began:.1f} s; index {options.index}; --rollback goes back"
        + (f"\n{done.dead:,} companies are missing, their dead letters are in {options.dead_letters}" * bool(done.dead))
    )


def _fill(moving: Move, index: Index, successor: Index, batch_size: int) -> None:
    """Until all that was in the live index a moment ago is in its successor, and found there."""
    with successor.loading():
        done = _carry(moving, index, "encoding")
    while True:  # others write meanwhile
        before, done = done.written, _carry(moving, index, "catching up")
        if done.written <= batch_size or done.written > before / 2:  # as close behind them as passes get
            break
    check(successor, done)


def check(successor: Index, done: Pass) -> None:
    """Raises CheckFailed unless the new index has all that was seen in the live one, and finds it."""
    successor.refresh()
    status = successor.status()
    if status.live < done.companies or status.tombstones < done.tombstones:
        raise CheckFailed(
            f"{status.physical} holds {status.live:,} companies and {status.tombstones:,} tombstones, expected "
            f"{done.companies:,} and {done.tombstones:,}; nothing went live, the same command goes on"
        )
    for company in successor.get_many(done.sample).values():
        assert company.embedding is not None  # only tombstones have none
        hits = successor.nearest(company.embedding, 1, model=status.model)
        if not hits or (hits[0].document.id != company.id and hits[0].score < SAME):
            raise CheckFailed(
                f"{status.physical} does not find company {company.id!r} by its own vector; nothing went live"
            )


def _carry(moving: Move, index: Index, what: str, since: int = 0) -> Pass:
    status = index.status()
    total = status.live + status.tombstones
    with tqdm(total=total, unit="company", desc=what, file=sys.stderr, disable=None, leave=False) as bar:
        return moving.carry(index, bar.update, since)


@contextmanager
def _connected(services: Services) -> Iterator[Connection]:
    """An own server is stopped in the end."""
    own = services.serving
    with own.stopped_after() if isinstance(own, OwnServer) else nullcontext(), closing(Connection(services)) as connect:
        yield connect


@contextmanager
def _kept(folder: str) -> Iterator[Callable[[DeadLetter], object]]:
    """One file for all dead letters, in its place when the run ends, well or not."""
    files = LetterFiles(folder)
    files.start_bundle()
    try:
        yield files.process
    finally:
        files.finish_bundle()


def _parser() -> Parser:
    parser = Parser(
        prog="python -m pipelines.reindex",
        description="Moves an index to the model served at --serving. Until all is encoded and checked, the index\n"
        "answers with the former model; then it changes in one step. Interrupted, the same command goes on.",
        epilog="Passwords and keys come from the environment (PAUSE_ES_API_KEY, ...).",
    )
    add: Callable[..., Any] = parser.add_argument
    add("--index", default=DEMO_INDEX, metavar="URL", help="a path or http(s)://host:9200/alias; %(default)s")
    add("--serving", type=addresses, default=(), metavar="HOST:PORT,...", help="gRPC; default: started for the run")
    add("--rollback", action="store_true", help="back to the index from before the last move")
    add("--dead_letters", default=DEMO_DEAD_LETTERS, metavar="PATH", help="a folder; %(default)s")
    add("--max_dead", type=float, default=0.01, metavar="SHARE", help="of companies, to go live without; %(default)s")
    add("--batch_size", type=int, default=512, metavar="N", help="companies read and written at once; %(default)s")
    add("--in_flight", type=int, default=3, metavar="N", help="batches encoded at a time; %(default)s")
    return parser


def main(argv: list[str] | None = None) -> int:
    given = vars(_parser().parse_args(argv))
    return answer(lambda: print(run(Options(**given))))


if __name__ == "__main__":
    sys.exit(main())
