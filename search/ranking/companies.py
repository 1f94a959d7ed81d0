"""The index behind a circuit breaker; whatever a store raises becomes one error that says the index is down."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable, Iterable
from typing import TypeVar

from common.errors import CommandError, Outage
from index.base import Facets, Hit, Index, Status, Suggestion
from index.document import Document, Filters, Vector
from index.errors import CompanyMissing, IndexMissing, IndexUnavailable, IndexUnusable
from index.open import backend_of
from search.ranking.circuit_breaker import CircuitBreaker
from serving.tracing import spans

Result = TypeVar("Result")

log = logging.getLogger(__name__)


class IndexFailed(Outage):
    """The store broke over one question; others may be answered all the same."""


class Companies:
    """Deleted companies are in no answer: the index leaves them out."""

    def __init__(self, index: Index, took: Callable[[str, float], None] = lambda operation, seconds: None):
        """`took` is told how long the index took for an operation."""
        self.url, self._took = index.url, took
        self._index = index
        self._breaker = CircuitBreaker((IndexMissing, IndexUnavailable, IndexUnusable))

    @property
    def kind(self) -> str:
        return backend_of(self.url).name

    def model(self) -> str:
        return self._ask("spec", lambda: self._index.spec()).model

    def status(self) -> Status:
        return self._ask("status", self._index.status)

    def get(self, id: str) -> Document:
        return self.get_all([id])[id]

    def get_all(self, ids: Iterable[str]) -> dict[str, Document]:
        """With their vectors, in the order asked for; CompanyMissing where one is not there."""
        asked = list(dict.fromkeys(ids))
        found = self.get_some(asked)
        missing = [id for id in asked if id not in found]
        if missing:
            raise CompanyMissing(self.url, missing[0])
        return {id: found[id] for id in asked}

    def get_some(self, ids: Iterable[str]) -> dict[str, Document]:
        asked = list(ids)
        return self._ask("get", lambda: self._index.get_many(asked)) if asked else {}

    def require(self, ids: Iterable[str]) -> None:
        """CompanyMissing unless all are there."""
        asked = list(ids)
        known = self._ask("known", lambda: self._index.known(asked))
        for id in asked:
            if id not in known or known[id].deleted:
                raise CompanyMissing(self.url, id)

    def nearest(self, vector: Vector, k: int, model: str, filters: Filters) -> list[Hit]:
        return self._ask("nearest", lambda: self._index.nearest(vector, k, model=model, filters=filters))

    def words(self, text: str, k: int, filters: Filters) -> list[Hit]:
        return self._ask("words", lambda: self._index.search(text, k, filters=filters))

    def ranked(self, text: str, vector: Vector, depth: int, model: str, filters: Filters) -> list[str]:
        """Ids by meaning, words and name: one list and its beginnings, whatever the depth."""
        return self._ask("ranked", lambda: self._index.ranked(text, vector, depth, model=model, filters=filters))

    def suggest(self, prefix: str, k: int) -> list[Suggestion]:
        return self._ask("suggest", lambda: self._index.suggest(prefix, k))

    def facets(self, filters: Filters, top: int) -> Facets:
        return self._ask("facets", lambda: self._index.facets(filters, top))

    def _ask(self, operation: str, work: Callable[[], Result]) -> Result:
        def guarded() -> Result:
            began = time.monotonic()
            try:
                return work()
            except CommandError:
                raise
            except Exception as error:  # each store has exceptions of its own, and their classes cost seconds to import
                # The frames alone: a store's message may quote what was asked.
                frames = "".join(traceback.format_tb(error.__traceback__))
                log.error("the index failed: %s\n%s", type(error).__name__, frames)
                raise IndexFailed(f"the index at {self.url} failed ({type(error).__name__})") from error
            finally:
                self._took(operation, time.monotonic() - began)

        with spans.span(f"index {operation}"):
            return self._breaker.call(guarded)
