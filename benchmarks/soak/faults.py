"""Seeded fault injection: kinds of faults with a name, a begin and an end, drawn from shuffled decks, so that each
gets its turn."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.soak.parts.world import World
from benchmarks.soak.traffic import Traffic

AHEAD_SECONDS = 300.0  # of a wrong clock: within the day that is taken


@dataclass(frozen=True)
class Fault:
    """One that was. `excuses`: a search may fail while it lasts."""

    kind: str
    began: float
    ended: float
    excuses: bool
    failure: str = ""  # where the operator's own command did not work


@dataclass
class Log:
    """The faults that are over, and the begin of those under way."""

    faults: list[Fault] = field(default_factory=list)
    under_way: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def fault(self, kind: str, excuses: bool) -> Iterator[None]:
        began, failure = time.time(), ""
        self.under_way[kind] = began
        try:
            yield
        except Exception as error:  # whatever it is, the next fault gets its turn
            failure = f"{type(error).__name__}: {error}"
        finally:
            del self.under_way[kind]
            self.faults.append(Fault(kind, began, time.time(), excuses, failure))


@dataclass(frozen=True)
class Kind:
    """`excuses`: searches may fail meanwhile; `seconds`: how long it lasts, between begin and end."""

    name: str
    begin: Callable[[], object]
    end: Callable[[], object] = lambda: None
    excuses: bool = True
    seconds: tuple[float, float] = (0.0, 0.0)


class Lane(threading.Thread):
    """One fault after the other; none begins in quiet times."""

    def __init__(
        self,
        name: str,
        log: Log,
        kinds: list[Kind],
        seed: int,
        gap: tuple[float, float],
        quiet: Callable[[], bool],
        note: Callable[[str], object],
    ):
        super().__init__(name=name, daemon=True)
        self._log, self._kinds, self._gap, self._quiet, self._note = log, kinds, gap, quiet, note
        self._chance, self._over = random.Random(f"{name} {seed}"), threading.Event()

    def run(self) -> None:
        deck: list[Kind] = []
        while not self._over.wait(self._chance.uniform(*self._gap)):
            if self._quiet():
                continue
            if not deck:
                deck = [*self._kinds]
                self._chance.shuffle(deck)
            self._one(deck.pop())

    def _one(self, kind: Kind) -> None:
        if not kind.name:  # an operator's piece of work notes its own faults
            try:
                kind.begin()
            except Exception as error:
                self._note(f"{type(error).__name__}: {error}")
            return
        with self._log.fault(kind.name, kind.excuses):
            try:
                kind.begin()
                self._over.wait(self._chance.uniform(*kind.seconds))
            finally:
                kind.end()

    def stop(self) -> None:
        """Returns when what is under way has ended."""
        self._over.set()
        self.join()


def network(world: World, clock: Traffic) -> list[Kind]:
    """Short ones, between the parts: each lasts some seconds."""

    def trouble(proxy: object, what: str) -> tuple[Callable[[], object], Callable[[], object]]:
        return lambda: setattr(proxy, "trouble", what), lambda: setattr(proxy, "trouble", "")

    short = (3.0, 7.0)
    return [
        Kind("elasticsearch 429", *trouble(world.http, "429"), seconds=short),
        Kind("elasticsearch 503", *trouble(world.http, "503"), seconds=short),
        Kind("elasticsearch slow", *trouble(world.http, "slow"), seconds=short),
        Kind("elasticsearch dropped", *trouble(world.http, "drop"), seconds=short),
        Kind("elasticsearch cut short", *trouble(world.http, "cut"), seconds=short),
        Kind("server slow", *trouble(world.tcp, "slow"), seconds=short),
        Kind("server dropped", *trouble(world.tcp, "drop"), seconds=short),
        Kind(
            "wrong clock",
            lambda: setattr(clock, "clock_ahead", AHEAD_SECONDS),
            lambda: setattr(clock, "clock_ahead", 0.0),
            excuses=False,
            seconds=short,
        ),
    ]


def processes(world: World) -> list[Kind]:
    """Each part killed or ended gently, and started again; over when it answers."""
    server, search = world.server_responds, world.search_responds
    brief = (0.5, 3.0)

    def responding(part: str, ready: Callable[[], bool]) -> Callable[[], object]:
        def start() -> None:
            world.parts[part].start()
            world.wait_until(ready, part)

        return start

    kinds = [
        Kind("kill server", world.server.kill, responding("server", server), seconds=brief),
        Kind("restart server", world.server.stop, responding("server", server)),
        Kind("kill search", world.search.kill, responding("search", search), seconds=brief),
        Kind("restart search", world.search.stop, responding("search", search)),
        Kind("kill file pipeline", world.watch.kill, world.watch.start, excuses=False, seconds=brief),
        Kind("kill file pipeline", world.watch.kill, world.watch.start, excuses=False, seconds=brief),
        Kind("restart message pipeline", lambda: stop_stream(world), world.stream.start, excuses=False),
    ]
    if world.owns_elasticsearch:
        kinds.append(Kind("kill elasticsearch", world.elasticsearch.restart))
        kinds.append(Kind("restart elasticsearch", lambda: world.elasticsearch.restart(gently=True)))
    return kinds


def stop_stream(world: World) -> None:
    """Drained: it has acknowledged all that it read."""
    code = world.stream.stop()
    if code:
        world.note(f"the message pipeline was ended and drained with {code}: {world.stream.last_words()}")


def full_disk(world: World) -> list[Kind]:
    """Of the dead letters of the file pipeline; none where no small disk could be mounted."""
    held = ExitStack()
    full = Kind("full disk", lambda: held.enter_context(filled(world.small_disk)), held.close, False, (4.0, 8.0))
    return [full] if world.has_small_disk else []


@contextmanager
def filled(disk: Path) -> Iterator[None]:
    """No byte is left on it."""
    ballast = disk / "ballast"
    try:
        with ballast.open("wb", buffering=0) as file, suppress(OSError):
            while file.write(bytes(4096)):
                pass
        yield
    finally:
        ballast.unlink(missing_ok=True)
