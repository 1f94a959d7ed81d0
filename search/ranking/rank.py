"""Ranks companies for a question: by vector, by words, or by both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import numpy as np

from common.errors import InputError
from index.base import Hit, by_cosine
from index.document import EVERYTHING, Document, Filters, Vector
from index.errors import WrongModel
from search.ranking.companies import Companies
from search.ranking.encoder import Encoder, NotServed

AWAY = 0.5  # how much the companies to stay away from count against those to be like
SMALLEST = 1e-6
TRIES = 4  # of a question that an index which is being moved comes between

Answer = TypeVar("Answer")
Mode = Literal["hybrid", "vector", "words"]
Scored = Literal["cosine", "words"]


@dataclass(frozen=True)
class Question:
    """Something typed, companies to be like, companies to stay away from; at least one of the first two."""

    text: str | None = None
    like: tuple[str, ...] = ()
    unlike: tuple[str, ...] = ()
    filters: Filters = EVERYTHING
    mode: Mode = "hybrid"
    k: int = 10
    offset: int = 0

    @property
    def depth(self) -> int:
        return self.offset + self.k


@dataclass(frozen=True)
class Ranking:
    """`total` where the list came to its end, and it is known how long it is."""

    hits: Sequence[Hit]
    anchors: Sequence[Document]  # those to be like
    model: str
    total: int | None
    scored_by: Scored


def rank(question: Question, companies: Companies, encoder: Encoder) -> Ranking:
    """Anchors are left out of the answer. In hybrid mode words and names count too, but every score is the cosine."""
    return of_one_model(lambda: _rank(question, companies, encoder), companies)


def of_one_model(work: Callable[[], Answer], companies: Companies) -> Answer:
    """What `work` finds. Where the index is moved to another model meanwhile, anchors and vectors of the former one are
    of no use: all is asked again, of the index as it is then."""
    for _ in range(TRIES - 1):
        try:
            return work()
        except WrongModel as error:
            # Asking for the model looks at the index anew, which a reader else does once a second.
            if companies.model() == error.args[1] and isinstance(error, NotServed):
                raise  # nothing was moved
    return work()


def require(documents: Iterable[Document], model: str, companies: Companies) -> None:
    """WrongModel where one of them was read after the index was moved to another model."""
    for document in documents:
        if document.model != model:
            raise WrongModel(companies.url, document.model, model)


def _rank(question: Question, companies: Companies, encoder: Encoder) -> Ranking:
    anchors = companies.get_all([*question.like, *question.unlike])
    like = [anchors[id] for id in dict.fromkeys(question.like)]
    excluded = tuple(dict.fromkeys((*question.filters.exclude_ids, *anchors)))
    filters = replace(question.filters, exclude_ids=excluded)
    text = question.text
    if question.mode == "words":
        found = companies.words(text or "", question.depth, filters)
        model = found[0].document.model if found else companies.model()
        return _page(question, found, like, model, "words")
    # A stored company brings the name of its model along; only what was typed needs the index to be asked.
    model = next((one.model for one in anchors.values()), None) or companies.model()
    typed = [encoder.vector(text, model)] if text else []
    unlike = [anchors[id] for id in dict.fromkeys(question.unlike)]
    vector = direction([*typed, *map(_vector, like)], [*map(_vector, unlike)])
    if question.mode == "vector" or not text:
        return _page(question, companies.nearest(vector, question.depth, model, filters), like, model, "cosine")
    ids = companies.ranked(text, vector, question.depth, model, filters)
    shown = ids[question.offset : question.depth]
    documents = companies.get_some(shown)
    require(documents.values(), model, companies)
    return Ranking(by_cosine(shown, documents, vector), like, model, _total(question, len(ids)), "cosine")


def direction(towards: Sequence[Vector], away: Sequence[Vector]) -> Vector:
    """The mean of unit vectors [d], less half the mean of those to stay away from, of unit length."""
    mean = np.mean([_unit(one) for one in towards], axis=0)
    if away:
        mean = mean - AWAY * np.mean([_unit(one) for one in away], axis=0)
    length = float(np.linalg.norm(mean))
    if length < SMALLEST:
        raise InputError("what to be like and what to stay away from cancel out; leave one of them away")
    unit: Vector = (mean / length).astype(np.float32)
    return unit


def _page(question: Question, found: list[Hit], like: list[Document], model: str, scored_by: Scored) -> Ranking:
    total = _total(question, len(found))
    return Ranking(found[question.offset : question.depth], like, model, total, scored_by)


def _total(question: Question, found: int) -> int | None:
    return found if found < question.depth else None


def _vector(company: Document) -> Vector:
    assert company.embedding is not None  # only tombstones have none
    return company.embedding


def _unit(vector: Vector) -> Vector:
    unit: Vector = vector / np.linalg.norm(vector)
    return unit
