"""What is read and searched of an index in memory: all of it is looked at each time."""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from index.base import Facets, Hit, Index, Known, Spec, Status, Suggestion
from index.checks import check_query, check_size
from index.document import EVERYTHING, FILTERABLE, Document, Filters, Vector, fold, is_unicode
from index.errors import IndexMissing
from index.merge_versions import describe
from index.ranking.analysis import starts, telling_words, words
from index.ranking.fusion import Candidate, may_be_a_name
from index.ranking.name_matching import likeness

SATURATION = 1.2  # of BM25: how soon a word that comes again counts no more


@dataclass
class Table:
    """A physical index."""

    name: str
    spec: Spec
    created_at: int
    documents: dict[str, Document] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)  # by id: the number of its last write
    purged: bool = False


@dataclass
class Place:
    """All that one address has: its tables, oldest first, and the names of those that went live, the last one first."""

    tables: dict[str, Table] = field(default_factory=dict)
    history: list[str] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    writes: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    writing: threading.RLock = field(default_factory=threading.RLock)
    moving: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, spec: Spec) -> Table:
        """The table for a model after the live one: one begun before, or a new one."""
        names = list(self.tables)
        after = names[names.index(self.history[0]) + 1 :] if self.history else names
        begun = [name for name in after if self.tables[name].spec.model == spec.model]
        name = begun[-1] if begun else f"companies-{spec.model}-{next(self.numbers)}"
        return self.tables.setdefault(name, Table(name, spec, now()))


class MemoryReading(Index):
    """Follows the live table, or stays with the one that is named."""

    def __init__(self, url: str, place: Place, pinned: str | None = None):
        self.url, self._place, self._pinned = url, place, pinned

    def spec(self) -> Spec:
        return self._table().spec

    def status(self) -> Status:
        table, documents = self._table(), list(self._table().documents.values())
        tombstones = sum(one.deleted for one in documents)
        return Status(
            model=table.spec.model,
            dimension=table.spec.dimension,
            physical=table.name,
            created_at=table.created_at,
            live=len(documents) - tombstones,
            tombstones=tombstones,
            newest_version=max((one.version for one in documents), default=None),
            newest_write=max((one.indexed_at for one in documents), default=None),
            bytes=sum(one.embedding.nbytes for one in documents if one.embedding is not None),
            vectors="exact",
            purged=table.purged,
        )

    def known(self, ids: Iterable[str]) -> dict[str, Known]:
        stored = self._table().documents
        return {id: describe(stored[id]) for id in ids if id in stored}

    def get_many(self, ids: Iterable[str]) -> dict[str, Document]:
        stored = self._table().documents
        return {id: stored[id] for id in ids if id in stored and not stored[id].deleted}

    def mark(self) -> int:
        return next(self._place.writes)

    def scan(
        self, batch_size: int = 1000, tombstones: bool = False, since: int | None = None
    ) -> Iterator[list[Document]]:
        table = self._table()
        chosen = [one for one in table.documents.values() if tombstones or not one.deleted]
        yield from _batches([one for one in chosen if since is None or table.written[one.id] > since], batch_size)

    def scan_known(self, batch_size: int = 1000) -> Iterator[dict[str, Known]]:
        for batch in _batches(list(self._table().documents.values()), batch_size):
            yield {one.id: describe(one) for one in batch}

    def facets(self, filters: Filters = EVERYTHING, top: int = 100) -> Facets:
        counts: dict[str, Counter[str]] = {name: Counter() for name in FILTERABLE}
        for one in self._matching(filters):
            for name in FILTERABLE:
                counts[name].update(value for value in _values(one, name) if value)
        return {
            name: sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))[:top] for name, found in counts.items()
        }

    def suggest(self, prefix: str, k: int = 10) -> list[Suggestion]:
        typed = fold(prefix)
        named = {one.id: fold(one.name) for one in self._matching(EVERYTHING)} if typed and is_unicode(typed) else {}
        found = [id for id, name in named.items() if any(start.startswith(typed) for start in starts(name))]
        best = sorted(found, key=lambda id: (not named[id].startswith(typed), len(named[id]), named[id], id))[:k]
        return [Suggestion(id, self.get(id).name) for id in best]

    # searching

    def nearest(
        self, vector: Vector, k: int, *, model: str, filters: Filters = EVERYTHING, exact: bool = False
    ) -> list[Hit]:
        check_query(self.url, self.spec(), model, vector, k)
        return _best(((one, _cosine(one, vector)) for one in self._matching(filters)), k)

    def search(self, text: str, k: int, *, filters: Filters = EVERYTHING) -> list[Hit]:
        check_size(k)
        scores = _word_scores(words(text), list(self._matching(EVERYTHING)))
        return _best(((one, scores[one.id]) for one in self._matching(filters) if scores[one.id]), k)

    def nearest_candidates(
        self, vector: Vector, k: int, *, model: str, filters: Filters = EVERYTHING
    ) -> list[Candidate]:
        return [_candidate(hit) for hit in self.nearest(vector, k, model=model, filters=filters)]

    def worded_candidates(self, text: str, k: int, *, filters: Filters = EVERYTHING) -> list[Candidate]:
        return [_candidate(hit) for hit in self.search(text, k, filters=filters)]

    def typed_candidates(
        self, text: str, k: int, *, filters: Filters = EVERYTHING
    ) -> tuple[list[Candidate], list[Candidate]]:
        worded = self.worded_candidates(text, k, filters=filters)
        if not is_unicode(text) or not may_be_a_name(text):
            return worded, []
        return worded, [_candidate(Hit(one, 0.0)) for one in self._matching(filters) if likeness(text, one.name)]

    def _table(self) -> Table:
        name = self._pinned or next(iter(self._place.history), None)
        if name is None:
            raise IndexMissing(self.url)
        return self._place.tables[name]

    def _matching(self, filters: Filters) -> Iterator[Document]:
        for one in list(self._table().documents.values()):
            wanted = [(name, set(getattr(filters, name))) for name in FILTERABLE if getattr(filters, name)]
            matches = all(values.intersection(_values(one, name)) for name, values in wanted)
            if matches and not one.deleted and one.id not in filters.exclude_ids:
                yield one


def _values(one: Document, name: str) -> tuple[str, ...]:
    return one.tags if name == "tags" else (value,) if (value := getattr(one, name)) else ()


def _cosine(one: Document, vector: Vector) -> float:
    """Rounded, so that equal ones are equal whatever their lengths."""
    assert one.embedding is not None  # only tombstones have none
    return round(float(one.embedding @ vector / np.linalg.norm(vector) / np.linalg.norm(one.embedding)), 6)


def _word_scores(asked: list[str], documents: list[Document]) -> dict[str, float]:
    """BM25 without lengths: rare words count more, and those of a name double."""
    counted = {one.id: (Counter(words(one.name)), Counter(telling_words(one.description))) for one in documents}
    scores = dict.fromkeys(counted, 0.0)
    for word in set(asked):
        having = {id: both for id, both in counted.items() if any(word in one for one in both)}
        rarity = math.log(1 + (len(counted) - len(having) + 0.5) / (len(having) + 0.5))
        for id, (name, description) in having.items():
            times = [2 * name[word] / (name[word] + SATURATION), description[word] / (description[word] + SATURATION)]
            scores[id] += rarity * sum(times)
    return scores


def _best(found: Iterable[tuple[Document, float]], k: int) -> list[Hit]:
    hits = [Hit(replace(one, embedding=None), score) for one, score in found]
    return sorted(hits, key=lambda hit: (-hit.score, hit.document.id))[:k]


def _candidate(hit: Hit) -> Candidate:
    one = hit.document
    return Candidate(one.id, fold(one.name), (one.industry, *one.tags), hit.score)


def _batches(documents: list[Document], size: int) -> Iterator[list[Document]]:
    return (documents[start : start + size] for start in range(0, len(documents), size))


def _by_count(pair: tuple[str, int]) -> tuple[int, str]:
    return -pair[1], pair[0]


def now() -> int:
    return time.time_ns() // 1000
