"""What an operator does during a soak: publishes and rolls back models, purges, runs batches and replays, copies files
slowly."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from benchmarks.soak.check.findings import AS_OF, delivery
from benchmarks.soak.check.history import BATCH, REPLAY, History, Purge, microseconds
from benchmarks.soak.faults import Kind, Log
from benchmarks.soak.parts.models import contract_of
from benchmarks.soak.parts.part import python, tied
from benchmarks.soak.parts.world import World
from benchmarks.soak.senders import Files
from benchmarks.soak.traffic import Draft, Traffic
from benchmarks.soak.watcher import Settling
from index.document import Document
from serving.client import EmbeddingClient
from serving.storage.open import open_base

BATCH_RECORDS = 20
KILL_AFTER = (3.0, 9.0)  # seconds: a reindex has begun to write by then, or has just ended
SERVED_SECONDS = 120.0


class Operator:
    """Runs the commands that an operator would run, and notes what they mean for the history."""

    def __init__(
        self,
        world: World,
        history: History,
        settling: Settling,
        files: Files,
        traffic: Traffic,
        seed: int,
        purge_age: float,
    ):
        """Its own `traffic` never sends what is older than a deletion."""
        self._world, self._history, self._settling, self._files = world, history, settling, files
        self._purge_age, self._log = purge_age, Log()
        self._chance, self._traffic = random.Random(f"operator {seed}"), traffic
        self._batches = Files(world.folder / "batch", history, BATCH)
        self._replays = Files(world.folder / "replay", history, REPLAY)
        self._archive = world.folder / "archive"
        self._archive.mkdir()
        self._replayed: set[str] = set()
        self._can_go_back = False

    def models(self, log: Log) -> list[Kind]:
        self._log = log
        return [Kind("", work) for work in (self.change_model, self.change_model, self.go_back)]

    def kinds(self, log: Log) -> list[Kind]:
        others = (self.purge, self.batch, self.replay, self.half_file)
        return [*self.models(log), *(Kind("", work) for work in others)]

    # models

    def change_model(self) -> None:
        """Publish, and move the index; now and then the move is killed first and run again."""
        newest, live = self._newest(), self._world.live_model()
        if newest == live:
            others = [one for one in self._world.exports if contract_of(one).fingerprint != live]
            chosen = self._chance.choice(others)
            with self._log.fault("publish", excuses=False):
                self._world.must("serving.publish", "--from", str(chosen), "--to", str(self._world.base))
                self._world.wait_until(lambda: self._served() == contract_of(chosen).fingerprint, "the new version")
        if self._chance.random() < 0.4:
            with self._log.fault("kill reindex", excuses=False):
                self._killed_reindex()
        with self._log.fault("reindex", excuses=False):
            self._world.must("pipelines.reindex", *self._reindex_flags())
            self._can_go_back = True

    def go_back(self) -> None:
        """Index first, then the model; or, where nobody will, the former index is dropped."""
        if not self._can_go_back:
            self.change_model()
        if not self._can_go_back:
            return
        self._can_go_back = False
        if self._chance.random() < 0.4:
            with self._log.fault("drop former", excuses=False):
                self._world.must("index", "drop", "--former", "--index", self._world.index_url)
            return
        before = self._world.live_model()
        with self._log.fault("reindex rollback", excuses=False):
            self._world.must("pipelines.reindex", "--rollback", *self._reindex_flags())
        if self._world.live_model() == before:
            return
        with self._log.fault("publish rollback", excuses=False):
            where = ("--to", str(self._world.base), "--serving", f"127.0.0.1:{self._world.server_port}")
            self._world.must("serving.publish", "--rollback", *where)

    def _reindex_flags(self) -> list[str]:
        letters = self._world.letters / "reindex"
        return [
            *("--index", self._world.index_url),
            *("--serving", self._world.serving),
            *("--dead_letters", str(letters)),
        ]

    def _killed_reindex(self) -> None:
        with (self._world.folder / "logs" / "killed-reindex.log").open("ab") as log:
            command = tied(python("pipelines.reindex", *self._reindex_flags()))
            moving = subprocess.Popen(command, stdout=log, stderr=log)
            try:
                moving.wait(self._chance.uniform(*KILL_AFTER))
            except subprocess.TimeoutExpired:
                moving.send_signal(signal.SIGKILL)
                moving.wait()

    def _newest(self) -> str:
        base = open_base(str(self._world.base))
        newest = base.newest()
        assert newest is not None
        return base.contract(newest).fingerprint

    def _served(self) -> str:
        from common.errors import CommandError

        try:
            with EmbeddingClient([f"127.0.0.1:{self._world.server_port}"], deadline=2.0) as client:
                return client.contract().fingerprint
        except CommandError:
            return ""

    # purges

    def purge(self) -> None:
        """Only where nothing older than the tombstones can still arrive: files that were taken in are out of the way,
        and nothing sent before half that age is still waited for."""
        began = time.time()
        old = began - self._purge_age / 2
        left = self.archive(old)
        waiting = [record for record in self._settling.waiting if record.sent < old]
        if left or waiting:
            self._world.note(f"no purge: {len(left)} files and {len(waiting)} records are still to be taken in")
            return
        with self._log.fault("purge", excuses=False):
            age = f"{self._purge_age:.0f}s"
            self._world.must("index", "purge", "--index", self._world.index_url, "--older-than", age)
            self._history.purges.append(Purge(began, time.time() - self._purge_age))

    def archive(self, old: float) -> list[str]:
        """Moves files sent before then that were taken in for certain; the names of those that were not."""
        buried = {delivery(letter["source"]) for letter in letters(self._world.watch_letters)}
        wanted: dict[str, list[str]] = {}
        for record in self._history.bad():
            wanted.setdefault(record.source.partition(",")[0], []).append(record.source)
        left = []
        for name, number in list(self._files.markers.items()):
            path = self._files.folder / name
            if self._history.records[number].sent >= old or not path.exists():
                continue
            if number in self._history.settled and buried.issuperset(wanted.get(name, ())):
                path.rename(self._archive / name)
            else:
                left.append(name)
        return left

    # batches and replays

    def batch(self) -> None:
        drafts = [self._traffic.draw() for _ in range(BATCH_RECORDS)]
        name = self._batches.next_name()
        self._batches.drop(name, [*drafts, self._traffic.marker(name)])
        self._encode("--input", str(self._batches.folder / name), letters=self._world.letters / "batch")

    def replay(self) -> None:
        """Dead letters of companies without a description get one."""
        fixed = list(self._put_right())
        if not fixed:
            return
        name = self._replays.next_name()
        rows = [letter for letter, _ in fixed]
        self._replays.drop_letters(name, rows, [draft for _, draft in fixed])
        self._encode("--replay", str(self._replays.folder / name), letters=self._world.letters / "replay")

    def _put_right(self) -> Iterator[tuple[dict, Draft]]:
        for folder in (self._world.watch_letters, self._world.letters / "stream"):
            for letter in letters(folder):
                record, as_of = letter["record"], AS_OF.search(letter["source"])
                blank = letter["reason"].startswith("description") and isinstance(record, dict)
                if not blank or record["id"] in self._replayed:
                    continue
                self._replayed.add(record["id"])
                description = f"put right #{record['id']}"
                # As old as its file or message; where the letter does not say, as the letter itself.
                version = microseconds(datetime.fromisoformat(as_of[1] if as_of else letter["at"]))
                document = Document(record["id"], version, description=description)
                right = {**letter, "record": {**record, "description": description}}
                yield right, Draft("replayed", document.id, document)

    def _encode(self, *flags: str, letters: Path) -> None:
        where = ("--serving", self._world.serving, "--index", self._world.index_url, "--dead_letters", str(letters))
        self._world.must("pipelines.encode", "--runner=DirectRunner", *flags, *where)

    def half_file(self) -> None:
        """A file that is copied slowly into the folder that is watched."""
        drafts = [replace(self._traffic.draw(), untimed=False) for _ in range(BATCH_RECORDS)]
        good = [draft for draft in drafts if draft.document]
        name = self._files.next_name(".jsonl.gz")
        with self._log.fault("half a file", excuses=False):
            self._files.drop(name, [*good, self._traffic.marker(name)], half_first=lambda: time.sleep(3.0))


def letters(folder: Path) -> Iterator[dict]:
    """All that are in their place; what is being written has another ending."""
    for path in sorted(folder.glob("*.jsonl")) if folder.exists() else ():
        for line in path.read_bytes().splitlines():
            yield json.loads(line)
