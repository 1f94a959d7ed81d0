"""The interface of an index, whatever keeps it; one contract suite holds every back end to it."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from index.document import EVERYTHING, Document, Filters, Vector
from index.errors import CompanyMissing, WrongModel
from index.fusion import Candidate, blend, fuse
from model.errors import InputError

# So many by meaning and so many by words are looked at for the first pages, whatever their size: pages that follow each
# other are cut from one list. Further pages go on by ranks, and as deep as this.
POOL = 150
DEEPEST_RANK = 2000


@dataclass(frozen=True)
class Spec:
    """The model an index is made for."""

    model: str
    dimension: int

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[0-9a-f]{16}", self.model):
            raise InputError(f"model {self.model!r} is not a fingerprint: 16 of the digits 0-9 and a-f")
        if not 1 <= self.dimension <= 4096:  # where Elasticsearch ends
            raise InputError(f"dimension must be from 1 to 4096, got {self.dimension}")


@dataclass(frozen=True)
class Known:
    """What the index has of a company, enough to skip an unchanged one."""

    version: int
    text_hash: str
    fields_hash: str
    model: str
    deleted: bool


@dataclass(frozen=True)
class Outcome:
    """What became of one document: stale means that an equal or newer version is there already."""

    id: str
    status: Literal["indexed", "deleted", "stale", "failed"]
    reason: str = ""


@dataclass(frozen=True)
class Hit:
    """A company found, without its vector; the score is a cosine, or that of the words."""

    document: Document
    score: float


@dataclass(frozen=True)
class Suggestion:
    id: str
    name: str


@dataclass(frozen=True)
class Status:
    model: str
    dimension: int
    physical: str  # the name behind the alias
    created_at: int  # microseconds, as all times here
    live: int
    tombstones: int
    newest_version: int | None
    newest_write: int | None
    bytes: int
    vectors: str  # how they are searched


Facets = dict[str, list[tuple[str, int]]]  # of each field: values with their counts, the most frequent first


class Index(ABC):
    """Companies with their vectors at one address. Deleted ones are in no answer but `known` and `status`."""

    url: str

    # writing

    @abstractmethod
    def write(self, documents: Sequence[Document]) -> list[Outcome]:
        """One outcome a document, as if each were written after the one before it. Newest version wins, equal is stale.

        A document that cannot be kept fails alone; one of another model raises WrongModel before anything is written.
        """

    @abstractmethod
    def purge(self, older_than_seconds: float) -> int:
        """Removes the tombstones written before that, and says how many: an older update could revive those."""

    @abstractmethod
    def refresh(self) -> None:
        """Returns when all that was written can be searched."""

    @abstractmethod
    def optimise(self) -> None:
        """Tidies up after many writes, and builds or extends what approximate search needs."""

    @abstractmethod
    def loading(self) -> AbstractContextManager[None]:
        """For many writes in a row: puts off all that is cheaper done once, and does it in the end."""

    # a new model without downtime

    @abstractmethod
    def successor(self, spec: Spec) -> Index:
        """An index for another model at the same address, unseen until `go_live`; one begun before is gone on with."""

    @abstractmethod
    def go_live(self) -> None:
        """From here on the address answers from this index."""

    @abstractmethod
    def rollback(self) -> str:
        """The address answers from the index before again; its physical name."""

    @abstractmethod
    def former(self) -> Index | None:
        """The index that `rollback` would go back to; it stays that one, whatever the address answers from later."""

    # reading

    @abstractmethod
    def spec(self) -> Spec: ...

    @abstractmethod
    def status(self) -> Status: ...

    @abstractmethod
    def known(self, ids: Iterable[str]) -> dict[str, Known]:
        """Of the ids that have been seen, tombstones among them."""

    @abstractmethod
    def get_many(self, ids: Iterable[str]) -> dict[str, Document]:
        """With their vectors."""

    @abstractmethod
    def scan(self, batch_size: int = 1000, tombstones: bool = False) -> Iterator[list[Document]]:
        """All documents with their vectors as they are now, whatever is written meanwhile."""

    @abstractmethod
    def facets(self, filters: Filters = EVERYTHING, top: int = 100) -> Facets: ...

    @abstractmethod
    def suggest(self, prefix: str, k: int = 10) -> list[Suggestion]:
        """Names with a word that begins so; those that begin so themselves come first, and the shorter ones."""

    # searching

    @abstractmethod
    def nearest(
        self, vector: Vector, k: int, *, model: str, filters: Filters = EVERYTHING, exact: bool = False
    ) -> list[Hit]:
        """By cosine to a vector [d] that `model` made."""

    @abstractmethod
    def search(self, text: str, k: int, *, filters: Filters = EVERYTHING) -> list[Hit]:
        """By the words of name and description; a name counts double."""

    @abstractmethod
    def nearest_candidates(
        self, vector: Vector, k: int, *, model: str, filters: Filters = EVERYTHING
    ) -> list[Candidate]:
        """As `nearest`, without the documents."""

    @abstractmethod
    def worded_candidates(self, text: str, k: int, *, filters: Filters = EVERYTHING) -> list[Candidate]:
        """As `search`, without the documents."""

    @abstractmethod
    def typed_candidates(
        self, text: str, k: int, *, filters: Filters = EVERYTHING
    ) -> tuple[list[Candidate], list[Candidate]]:
        """The k best by words; and some whose names may be the text, however it is joined, split or misspelt."""

    def get(self, id: str) -> Document:
        found = self.get_many([id])
        if id not in found:
            raise CompanyMissing(self.url, id)
        return found[id]

    def nearest_to(self, id: str, k: int, *, filters: Filters = EVERYTHING, exact: bool = False) -> list[Hit]:
        """By the vector of a stored company, itself left out."""
        company = self.get(id)
        assert company.embedding is not None  # only tombstones have none
        others = replace(filters, exclude_ids=(*filters.exclude_ids, id))
        return self.nearest(company.embedding, k, model=company.model, filters=others, exact=exact)

    def hybrid(self, text: str, vector: Vector, k: int, *, model: str, filters: Filters = EVERYTHING) -> list[Hit]:
        """By meaning, words and name, as `ranked`; the scores are cosines."""
        ids = self.ranked(text, vector, k, model=model, filters=filters)[:k]
        return by_cosine(ids, self.get_many(ids), vector)

    def ranked(self, text: str, vector: Vector, depth: int, *, model: str, filters: Filters = EVERYTHING) -> list[str]:
        """Ids by meaning, words and name: at least `depth` of them, if there are as many within DEEPEST_RANK.

        Whatever the depth, it is one list and its beginnings. Documents are for the caller to fetch: of a page, once.
        """
        check_size(depth)
        nearest = self.nearest_candidates(vector, POOL, model=model, filters=filters)
        worded, named = self.typed_candidates(text, POOL, filters=filters)
        first = blend(text, nearest, worded, named)
        if depth <= len(first) or max(len(nearest), len(worded)) < POOL:
            return first
        rankings = [
            self.nearest_candidates(vector, DEEPEST_RANK, model=model, filters=filters),
            self.worded_candidates(text, DEEPEST_RANK, filters=filters),
        ]
        behind = fuse([[one.id for one in ranking] for ranking in rankings], 2 * DEEPEST_RANK)
        seen = set(first)
        return [*first, *(id for id, _ in behind if id not in seen)]

    def require(self, model: str) -> None:
        """Raises WrongModel unless the index holds vectors of this very model."""
        kept = self.spec().model
        if model != kept:
            raise WrongModel(self.url, kept, model)


def by_cosine(ids: Iterable[str], documents: Mapping[str, Document], vector: Vector) -> list[Hit]:
    """In the order of the ids, without vectors. What was deleted a moment ago has no document, and falls out."""
    unit, hits = vector / np.linalg.norm(vector), []
    for document in (documents[id] for id in ids if id in documents):
        own = document.embedding
        assert own is not None  # only tombstones have none
        hits.append(Hit(replace(document, embedding=None), float(unit @ own / np.linalg.norm(own))))
    return hits


def check_query(url: str, spec: Spec, model: str, vector: Vector, k: int) -> None:
    """Raises for a vector of another model, and for a query that has no nearest companies."""
    if model != spec.model:
        raise WrongModel(url, spec.model, model)
    check_size(k)
    if vector.shape != (spec.dimension,) or not np.isfinite(vector).all() or not vector.any():
        raise InputError(
            f"a query is one vector of {spec.dimension} finite numbers, not all 0; got shape {vector.shape}"
        )


def check_size(k: int) -> None:
    if k < 1:
        raise InputError(f"k, the number of companies to find, must be at least 1, got {k}")
