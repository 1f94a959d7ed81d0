"""The interface of an index, whatever keeps it; one contract suite holds every back end to it."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from common.errors import InputError
from index.checks import check_size
from index.document import EVERYTHING, Document, Filters, Order, Vector
from index.errors import CompanyMissing, WrongModel
from index.moves import Movable
from index.ranking.fusion import DEEPEST_RANK, POOL, Candidate, blend, fuse


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

    @property
    def order(self) -> Order:
        """As `Document.order` of what is stored."""
        return self.version, self.deleted, "" if self.deleted else self.fields_hash


@dataclass(frozen=True)
class Outcome:
    """What became of one document: stale means that it, or one of a greater order, is there already."""

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
    """A company whose name begins as somebody types."""

    id: str
    name: str


@dataclass(frozen=True)
class Status:
    """What there is at an address, for operators and for the check before a move."""

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
    purged: bool  # whether tombstones were ever removed: what is missing from here may have been deleted


Facets = dict[str, list[tuple[str, int]]]  # of each field: values with their counts, the most frequent first


class Index(Movable):
    """Companies with their vectors at one address. Deleted ones are in no answer but `known` and `status`."""

    url: str

    # writing

    @abstractmethod
    def write(self, documents: Sequence[Document], force: bool = False) -> list[Outcome]:
        """One outcome a document, as if each were written after the one before it. The greatest `Document.order` wins,
        whichever comes first; with `force`, the last of one version.

        A document that cannot be kept fails alone; one of another model raises WrongModel before anything is written.
        What is not the document's fault raises: IndexUnavailable where its server stays away.
        """

    @abstractmethod
    def purge(self, older_than_seconds: float) -> int:
        """Removes the tombstones written before that, and says how many: an older update could revive those."""

    @abstractmethod
    def remove(self, known: Mapping[str, Known]) -> int:
        """Removes what is still as it is known here, without a tombstone, and says how many that were."""

    @abstractmethod
    def refresh(self) -> None:
        """Returns when all that was written can be searched."""

    @abstractmethod
    def optimise(self) -> None:
        """Tidies up after many writes, and builds or extends what approximate search needs."""

    @abstractmethod
    def loading(self) -> AbstractContextManager[None]:
        """For many writes in a row: puts off all that is cheaper done once, and does it in the end."""

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
    def mark(self) -> int:
        """For `scan`, to tell what is written from now on."""

    @abstractmethod
    def scan(
        self, batch_size: int = 1000, tombstones: bool = False, since: int | None = None
    ) -> Iterator[list[Document]]:
        """All documents with their vectors as they are now, whatever is written meanwhile; or all that were written
        since a mark, and maybe some from before."""

    @abstractmethod
    def scan_known(self, batch_size: int = 1000) -> Iterator[dict[str, Known]]:
        """Of all documents, tombstones among them, what `known` says."""

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
