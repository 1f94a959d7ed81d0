"""Seeded records of every sort, and the ways in by which they are sent: files, messages, batches, replays."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from benchmarks.soak.check.history import History, rfc3339
from index.document import Document

WORDS = (
    "bank loans credit savings beer ale lager hops brewery malt engine motor wheels car gearbox solar wind turbine "
    "grid cloud software data chips sensors drugs trials clinics seeds tractors milk bread freight ships ports rail"
).split()
SECTORS = ("Energy", "Finance", "Health", "Industry", "Software")
INDUSTRIES = ("Banking", "Brewing", "Cars", "Chips", "Farming", "Shipping")
COUNTRIES = ("Finland", "Ireland", "Japan", "Kenya", "Peru")
# How often each is sent, of a hundred.
SHARES = {
    "new": 38,
    "update": 16,
    "fields": 6,
    "delete": 10,
    "again": 4,
    "duplicate": 7,
    "late": 7,
    "untimed": 6,
    "equal": 3,
    "bad": 3,
}
LATE_SECONDS = 60.0
FEWEST_IDS, MOST_IDS = 10, 3000

BAD: tuple[tuple[str, Callable[[int], bytes]], ...] = (
    ("record", lambda n: b'{"id": "bad-%d", "description": ' % n),
    ("id", lambda n: json.dumps({"description": f"without an id #{n}"}).encode()),
    ("description", lambda n: json.dumps({"id": f"bad-{n}", "description": "  "}).encode()),
    ("updated_at", lambda n: json.dumps({"id": f"bad-{n}", "description": "x", "updated_at": "soon"}).encode()),
    ("updated_at", lambda n: json.dumps({"id": f"bad-{n}", "description": "x", "updated_at": _ahead()}).encode()),
    ("deleted", lambda n: json.dumps({"id": f"bad-{n}", "deleted": "perhaps"}).encode()),
    ("tags", lambda n: json.dumps({"id": f"bad-{n}", "description": "x", "tags": [1, 2]}).encode()),
    ("name", lambda n: b'{"id": "bad-%d", "description": "x", "name": "\xff\xfe"}' % n),
    ("sector", lambda n: json.dumps({"id": f"bad-{n}", "description": "x", "sector": "a\0b"}).encode()),
)


def _ahead() -> str:
    return rfc3339(int((time.time() + 3 * 86400) * 1e6))


@dataclass(frozen=True)
class Draft:
    """A record before it is sent."""

    kind: str
    id: str = ""
    document: Document | None = None
    raw: bytes = b""
    reason: str = ""
    untimed: bool = False


class Traffic:
    """Draws records. An id that was deleted gets older ones for `late_seconds` only: whoever purges counts on that."""

    def __init__(self, name: str, history: History, seed: int, ids: list[str], late_seconds: float = LATE_SECONDS):
        """`ids` are shared by all who send: a company's records come by every way."""
        self.history, self.late_seconds = history, late_seconds
        self.clock_ahead = 0.0  # seconds by which this producer's clock is wrong
        self._name, self._chance = name, random.Random(f"{name} {seed}")
        self._made = 0
        self._ids = ids

    def draw(self) -> Draft:
        kind = self._chance.choices(list(SHARES), list(SHARES.values()))[0]
        if kind == "bad":
            reason, make = self._chance.choice(BAD)
            return Draft(kind, raw=make(self._chance.randrange(10**9)), reason=reason)
        if (kind == "new" and len(self._ids) < MOST_IDS) or len(self._ids) < FEWEST_IDS:
            id = f"{self._name}-{self._next()}"
            self._ids.append(id)
            return self._draft("new", self._company(id))
        sort: Callable[[str], Draft | None] = self._update if kind == "new" else getattr(self, f"_{kind}")
        made = sort(self._chance.choice(self._ids))
        return made if made is not None and self._may_send(made) else self._update(self._chance.choice(self._ids))

    def marker(self, name: str) -> Draft:
        """A company of its own: when it is in the index, so is the batch that it was read in."""
        return self._draft("marker", self._company(f"marker-{name}"))

    def _next(self) -> int:
        self._made += 1
        return self._made

    def _now(self) -> int:
        return int((time.time() + self.clock_ahead) * 1e6)

    def _company(self, id: str, version: int | None = None) -> Document:
        pick = self._chance.choice
        words = " ".join(self._chance.choices(WORDS, k=self._chance.randint(3, 9)))
        return Document(
            id,
            self._now() if version is None else version,
            name=f"{pick(WORDS).title()} {id}",
            description=f"{words} #{self._name}{self._next()}",
            sector=pick(SECTORS),
            industry=pick(INDUSTRIES) if self._chance.random() < 0.8 else "",
            country=pick(COUNTRIES),
            tags=tuple(self._chance.sample(WORDS, 2)),
        )

    def _draft(self, kind: str, document: Document) -> Draft:
        return Draft(kind, document.id, document)

    def _after(self, id: str) -> int:
        """Newer than all that was sent of it, even by a clock that was ahead."""
        winner = self.history.winner(id)
        return max(self._now(), winner.order[0] + 1) if winner else self._now()

    def _update(self, id: str) -> Draft:
        return self._draft("update", self._company(id, self._after(id)))

    def _again(self, id: str) -> Draft | None:
        """A company that was deleted is there anew."""
        gone = [one for one in self._chance.sample(self._ids, min(40, len(self._ids))) if self._is_deleted(one)]
        return self._draft("again", self._company(gone[0], self._after(gone[0]))) if gone else None

    def _is_deleted(self, id: str) -> bool:
        winner = self.history.winner(id)
        return bool(winner and winner.document and winner.document.deleted)

    def _fields(self, id: str) -> Draft | None:
        """Another sector around an unchanged text."""
        winner = self.history.winner(id)
        if not winner or not winner.document or winner.document.deleted or winner.untimed:
            return None
        other = self._chance.choice(SECTORS)
        return self._draft(
            "fields", replace(winner.document, version=self._after(id), sector=f"{other} {self._next()}")
        )

    def _delete(self, id: str) -> Draft:
        return self._draft("delete", Document.tombstone(id, self._after(id)))

    def _duplicate(self, id: str) -> Draft | None:
        sent = [record for record in self.history.of(id) if not record.untimed]
        chosen = self._chance.choice(sent).document if sent else None
        return self._draft("duplicate", chosen) if chosen else None

    def _late(self, id: str) -> Draft:
        """Older than what was sent of it, most of the time: made minutes ago, or just before the newest."""
        winner = self.history.winner(id)
        newest = winner.order[0] if winner else self._now()
        back = self._chance.choice((1, 1_000_000, 90_000_000))
        return self._draft("late", self._company(id, newest - back))

    def _untimed(self, id: str) -> Draft:
        """Says nothing of when it was made. Its text is new: what says what is known already may be left alone."""
        return replace(self._draft("untimed", self._company(id)), untimed=True)

    def _equal(self, id: str) -> Draft | None:
        """Of the version that is the newest, with other content."""
        winner = self.history.winner(id)
        if not winner or winner.untimed:
            return None
        return self._draft("equal", self._company(id, winner.order[0]))

    def _may_send(self, draft: Draft) -> bool:
        winner = self.history.winner(draft.id)
        if winner is None or winner.document is None or not winner.document.deleted or draft.document is None:
            return True
        older = draft.document.order < winner.order or draft.untimed
        return not older or time.time() - winner.sent < self.late_seconds
