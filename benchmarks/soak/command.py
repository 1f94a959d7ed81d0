"""Hours of traffic, faults and questions on the real parts; then the whole history against what is there."""

from __future__ import annotations

import itertools
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

from elasticsearch.helpers import scan
from tqdm import tqdm

from benchmarks.measures.data import BUILD
from benchmarks.soak import faults
from benchmarks.soak.check.accounting import check_letters
from benchmarks.soak.check.checker import check_index, check_replies, check_seen
from benchmarks.soak.check.findings import MIXED, Finding, Letter, Run
from benchmarks.soak.check.history import FILE, MESSAGE, History
from benchmarks.soak.operations import Operator, letters
from benchmarks.soak.parts.models import Oracle
from benchmarks.soak.parts.world import ALIAS, World
from benchmarks.soak.report import Soak, draw, evidence, figures
from benchmarks.soak.senders import Files, Messages
from benchmarks.soak.traffic import Traffic
from benchmarks.soak.watcher import LOOK_SECONDS, MEMORY_SECONDS, Audit, Memory, Repeated, Searches, Settling
from index.document import Document
from index.elastic.mapping import to_document
from infra.local.elasticsearch import Elasticsearch

FOLDER = BUILD / "soak"
MINUTES, SEED, SEARCHES = 60.0, 14, 5
MESSAGES_A_SECOND, FILE_SECONDS, FILE_RECORDS = 3, 2.0, 6
ALL, MODELS = "all", "models"  # faults: every kind, or new models alone, under which no search may fail
QUIET_EVERY, QUIET_SECONDS = 300.0, 45.0
SETTLE_SECONDS, STILL_SECONDS = 300.0, 60.0
OLDEST_PURGED, YOUNGEST_PURGED = 240.0, 40.0


def run(
    data: Path,
    minutes: float = MINUTES,
    seed: int = SEED,
    searches: int = SEARCHES,
    plant: str = "",
    which: str = ALL,
    out: Path = FOLDER,
) -> dict:
    soak = soaked(out, minutes * 60, seed, searches, plant, which)
    draw(soak, out / "soak.png")
    lines = evidence(soak)
    (out / "evidence.txt").write_text("\n".join(lines) + "\n")
    for line in lines[:40]:
        print(line[:400], file=sys.stderr)
    print(f"picture, history, evidence and logs are in {out}", file=sys.stderr)
    return {"soak": figures(soak)}


def soaked(
    folder: Path,
    seconds: float,
    seed: int,
    searches: int,
    plant: str = "",
    which: str = ALL,
    elasticsearch: Elasticsearch | None = None,
) -> Soak:
    """With an Elasticsearch that is given, and so others', that one is neither killed nor restarted."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    history = History()
    with World(folder, seed, plant, elasticsearch) as world:
        acts = Acts(world, history, seconds, seed, searches, which)
        with acts:
            acts.wait()
        return acts.judged()


class Acts:
    """All that goes on at a time: producers, watchers, faults."""

    def __init__(self, world: World, history: History, seconds: float, seed: int, searches: int, which: str = ALL):
        self._world, self._history, self._seconds = world, history, seconds
        purge_age = min(OLDEST_PURGED, max(YOUNGEST_PURGED, seconds / 6))
        ids: list[str] = []
        self._file_traffic, self._message_traffic = (
            Traffic(name, history, seed, ids, purge_age / 4) for name in ("f", "m")
        )
        self._files, self._messages = Files(world.input, history), Messages(world.publish, history)
        self._settling, self._memory = Settling(world, history), Memory(world)
        self._searches = Searches(world, self._settling, seed)
        self._audit = Audit(world, self._messages)
        self._log = faults.Log()
        own = Traffic("b", history, seed, ids, 0.0)
        operator = Operator(world, history, self._settling, self._files, own, seed, purge_age)
        slow = [*faults.processes(world), *faults.full_disk(world), *operator.kinds(self._log)]
        decks = {"slow": (slow, (2.0, 6.0)), "quick": (faults.network(world, self._message_traffic), (4.0, 9.0))}
        if which == MODELS:
            decks = {"models": (operator.models(self._log), (2.0, 6.0))}
        self._lanes = [
            faults.Lane(name, self._log, kinds, seed, gap, self.is_quiet, world.note)
            for name, (kinds, gap) in decks.items()
        ]
        self._producers = [
            self._repeated("messages", 1 / MESSAGES_A_SECOND, self._message),
            self._repeated("files", FILE_SECONDS, self._file),
        ]
        people = max(4, searches)  # one that waits for an answer keeps no other from asking
        looks: list[tuple[str, float, Callable[[], object]]] = [
            ("settling", LOOK_SECONDS, self._settling.look),
            ("memory", MEMORY_SECONDS, self._memory.look),
            ("audit", LOOK_SECONDS, self._audit.look),
            *((f"search-{n}", people / searches, self._searches.ask) for n in range(people)),
        ]
        self._watchers = [self._repeated(*look) for look in looks]
        self._began = self._ended = time.time()

    def _repeated(self, name: str, seconds: float, work: Callable[[], object]) -> Repeated:
        return Repeated(name, seconds, work, lambda error: self._failed(name, error))

    def _failed(self, name: str, error: Exception) -> None:
        if name not in ("settling",):  # which looks at an Elasticsearch that is killed again and again
            self._world.note(f"{name}: {type(error).__name__}: {error}"[:300])

    def _message(self) -> None:
        self._messages.send(self._message_traffic.draw())

    def _file(self) -> None:
        name = self._files.next_name()
        drafts = [self._file_traffic.draw() for _ in range(FILE_RECORDS)]
        self._files.drop(name, [*drafts, self._file_traffic.marker(name)])

    def __enter__(self) -> Acts:
        self._began = time.time()
        for thread in (*self._watchers, *self._producers, *self._lanes):
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Faults end first, then what is sent; what was sent is waited for, and looked at until the end."""
        for lane in self._lanes:
            lane.stop()
        for producer in self._producers:
            producer.stop()
        self._ended = time.time()
        self._wait_until_settled()
        for watcher in self._watchers:
            watcher.stop()

    def wait(self) -> None:
        for _ in tqdm(range(round(self._seconds)), desc="soak", unit="s", disable=None):
            time.sleep(max(0.0, min(1.0, self._began + self._seconds - time.time())))

    def _wait_until_settled(self) -> None:
        """Until nothing is waited for, or nothing more comes."""
        deadline = time.monotonic() + SETTLE_SECONDS
        last, since = -1, time.monotonic()
        while time.monotonic() < deadline and time.monotonic() - since < STILL_SECONDS:
            left = len(self._settling.waiting)
            if left == 0 and time.monotonic() - since > 5:
                return
            if left != last:
                last, since = left, time.monotonic()
            time.sleep(0.5)

    # quiet times

    def _quiet_spans(self) -> list[tuple[float, float]]:
        every = min(QUIET_EVERY, max(60.0, self._seconds / 2))
        length = min(QUIET_SECONDS, every / 5)
        ends = itertools.takewhile(lambda end: end <= self._seconds, itertools.count(every, every))
        return [(self._began + end - length, self._began + end) for end in ends]

    def is_quiet(self) -> bool:
        now = time.time()
        return any(first - 5 <= now <= last for first, last in self._quiet_spans())

    # the end

    def judged(self) -> Soak:
        world, history = self._world, self._history
        faults.stop_stream(world)
        world.watch.stop()
        history.write(world.folder / "history.jsonl", answer=self._searches.replies, fault=self._log.faults)
        keep_letters(world)
        live, kept = world.live_model(), documents(world)
        oracle = Oracle(world.exports)
        buried = [Letter(one["source"], one["reason"], moment(one["at"])) for one in all_letters(world)]
        findings = [
            *aliases(world),
            *check_index(history, kept, live, world.contracts, oracle),
            *check_seen(history),
            *check_replies(history, self._searches.replies, world.contracts, oracle),
            *check_letters(history, buried, runs(world)),
        ]
        # What went before is still felt for a while.
        quiet = [(first + (last - first) / 4, last) for first, last in self._quiet_spans()]
        return Soak(
            self._began,
            self._ended,
            history,
            self._log.faults,
            self._searches.replies,
            self._settling.lags,
            [one for one in self._memory.samples if one[0] <= self._ended],
            findings,
            quiet,
            world.notes,
            [] if world.has_small_disk else ["full disk: mounting is not permitted"],
        )


def keep_letters(world: World) -> None:
    """The small disk goes with the world."""
    if world.has_small_disk and world.watch_letters.exists():
        shutil.copytree(world.watch_letters, world.letters / "watch", dirs_exist_ok=True)


def documents(world: World) -> list[Document]:
    """All that is behind the alias, by Elasticsearch's own account."""
    world.direct.indices.refresh(index=ALIAS)
    hits = scan(world.direct, index=ALIAS, query={"query": {"match_all": {}}}, size=500)
    return [to_document(hit["_id"], hit["_source"]) for hit in hits]


def aliases(world: World) -> Iterator[Finding]:
    behind = list(world.direct.indices.get_alias(name=ALIAS).body)
    if len(behind) != 1:
        yield Finding(MIXED, ALIAS, f"{len(behind)} indices answer for one address: {', '.join(behind)}")


def all_letters(world: World) -> Iterator[dict]:
    for folder in (world.watch_letters, *(world.letters / name for name in ("stream", "batch", "replay", "reindex"))):
        yield from letters(folder)


def runs(world: World) -> list[Run]:
    ways = ((FILE, world.watch), (MESSAGE, world.stream))
    return [Run(way, life.began, life.ended) for way, part in ways for life in part.lives]


def moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
