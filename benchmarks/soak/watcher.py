"""Observers of a soak: searches at a constant rate; samples of the index, of memory and of publish times."""

from __future__ import annotations

import http.client
import itertools
import json
import random
import threading
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any
from urllib.parse import quote

from google.api_core.exceptions import DeadlineExceeded

from benchmarks.soak.check.findings import Reply, Shown
from benchmarks.soak.check.history import History, Record, microseconds
from benchmarks.soak.parts.part import resident_bytes
from benchmarks.soak.parts.world import ALIAS, World
from benchmarks.soak.senders import Messages
from benchmarks.soak.traffic import WORDS
from index.document import Order

LOOK_SECONDS, MEMORY_SECONDS = 0.5, 5.0
PULL_SECONDS = 2.0
ASKED_SECONDS = 30.0  # then a search has failed
LOOKED_AT = 400  # companies in one look


class Repeated(threading.Thread):
    """Work at a constant rate until it is stopped; what went wrong is left to the next time."""

    def __init__(self, name: str, seconds: float, work: Callable[[], object], failed: Callable[[Exception], object]):
        super().__init__(name=name, daemon=True)
        self._seconds, self._work, self._failed = seconds, work, failed
        self._over = threading.Event()

    def run(self) -> None:
        due = time.monotonic()
        while not self._over.wait(max(0.0, due - time.monotonic())):
            due = max(due + self._seconds, time.monotonic() - self._seconds)  # one late round is made up for
            try:
                self._work()
            except Exception as error:
                self._failed(error)

    def stop(self) -> None:
        self._over.set()
        self.join(ASKED_SECONDS)


class Searches:
    """Questions by text and by company; every answer is kept."""

    def __init__(self, world: World, settling: Settling, seed: int):
        self.replies: list[Reply] = []
        self._world, self._settling = world, settling
        self._chance, self._turn = random.Random(seed), itertools.count()

    def ask(self) -> None:
        ids = self._settling.companies
        if next(self._turn) % 4 == 0 and ids:
            id = self._chance.choice(ids)
            self._keep(Reply(time.time(), 0, like=id), "GET", f"/v1/companies/{quote(id, safe='')}/similar?k=10", None)
            return
        text = " ".join(self._chance.choices(WORDS, k=3))
        body = {"text": text, "mode": self._chance.choice(("vector", "hybrid")), "k": 10}
        self._keep(Reply(time.time(), 0, text=text), "POST", "/v1/search", body)

    def _keep(self, asked: Reply, method: str, path: str, body: dict | None) -> None:
        self.replies.append(answered(asked, self._world.search_port, method, path, body))


def answered(asked: Reply, port: int, method: str, path: str, body: dict | None) -> Reply:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ASKED_SECONDS)
    known: dict[str, Any] = {"asked": asked.asked, "text": asked.text, "like": asked.like}
    try:
        headers = {"Content-Type": "application/json"}
        connection.request(method, path, json.dumps(body) if body else None, headers)
        response = connection.getresponse()
        content = response.read()
    except (OSError, http.client.HTTPException) as error:
        return Reply(answered=time.time(), failure=f"{type(error).__name__}: {error}", **known)
    finally:
        connection.close()
    if response.status == 404 and asked.like:
        return Reply(answered=time.time(), missing=True, **known)
    if response.status != 200:
        return Reply(answered=time.time(), failure=f"{response.status}: {content[:300].decode()}", **known)
    found = json.loads(content)
    anchor = shown(found["anchor"], 0.0) if found.get("anchor") else None
    hits = tuple(shown(hit["company"], hit["score"]) for hit in found["hits"])
    return Reply(answered=time.time(), model=found["model"], anchor=anchor, hits=hits, **known)


def shown(company: dict, score: float) -> Shown:
    version = microseconds(datetime.fromisoformat(company["updated_at"])) if company["updated_at"] else 0
    return Shown(company["id"], version, company["description"], score)


class Settling:
    """When a search could first find each record that was the newest of its company when it was sent."""

    def __init__(self, world: World, history: History):
        self.lags: list[tuple[float, float, str]] = []  # sent, seconds, way
        self.companies: list[str] = []  # that were seen, deleted or not
        self._world, self._history = world, history
        self._read, self._waiting = 0, dict[int, Record]()

    @property
    def waiting(self) -> list[Record]:
        return [*self._waiting.values()]

    def look(self) -> None:
        records = self._history.records
        while self._read < len(records):
            record = records[self._read]
            if record.document is not None and record == self._history.winner(record.id):
                self._waiting[record.number] = record
            self._read += 1
        # Not always the oldest: what never comes must not keep the others from being looked for.
        chosen = self.waiting if len(self._waiting) <= LOOKED_AT else random.sample(self.waiting, LOOKED_AT)
        if not chosen:
            return
        stored, at = self._stored(sorted({record.id for record in chosen})), time.time()
        for record in chosen:
            current = self._history.records[record.number]  # dated by now, perhaps
            order = stored.get(record.id)
            if order is not None and order >= current.order:
                self._settled(current, at, order == current.order)

    def _settled(self, record: Record, at: float, itself: bool) -> None:
        self._history.settle(record.number, at)
        del self._waiting[record.number]
        if itself:
            self.lags.append((record.sent, at - record.sent, record.way))
        if len(self.companies) < LOOKED_AT or random.random() < 0.05:
            self.companies = [*self.companies[-LOOKED_AT:], record.id]

    def _stored(self, ids: list[str]) -> dict[str, Order]:
        found = self._world.direct.search(
            index=ALIAS,
            query={"ids": {"values": ids}},
            source={"includes": ["version", "deleted", "fields_hash"]},
            size=len(ids),
        )
        return {hit["_id"]: order_of(hit["_source"]) for hit in found["hits"]["hits"]}


def order_of(source: dict) -> Order:
    return source["version"], source["deleted"], "" if source["deleted"] else source["fields_hash"]


class Memory:
    """Of each part: when, how old the process was, and its bytes."""

    def __init__(self, world: World):
        self.samples: list[tuple[float, str, float, int]] = []
        self._world = world
        self._began = time.time()

    def look(self) -> None:
        now = time.time()
        for name, part in self._world.parts.items():
            if part.pid:
                self.samples.append((now, name, part.age, resident_bytes(part.pid)))
        size = resident_bytes(self._world.elasticsearch.pid)
        self.samples.append((now, "elasticsearch", now - self._began, size))


class Audit:
    """Pub/Sub's own account of when each message was published, by a subscription that nobody else reads."""

    def __init__(self, world: World, messages: Messages):
        self._world, self._messages = world, messages

    def look(self) -> None:
        subscriber, name = self._world.subscriber, self._world.audit
        try:
            got = subscriber.pull(subscription=name, max_messages=500, timeout=PULL_SECONDS).received_messages
        except DeadlineExceeded:  # nothing was published meanwhile
            return
        for one in got:
            published = microseconds(one.message.publish_time)
            self._messages.published(one.message.message_id, published)
        if got:
            subscriber.acknowledge(subscription=name, ack_ids=[one.ack_id for one in got])
