"""The index as the service asks it: whatever goes wrong in a store becomes one error that says the index is down."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterable
from typing import TypeVar

from index.base import Facets, Hit, Index, Status, Suggestion
from index.document import Document, Filters, Vector
from index.errors import CompanyMissing, IndexMissing, IndexUnusable
from model.errors import InputError
from search.breaker import Breaker

Answer = TypeVar("Answer")

log = logging.getLogger(__name__)


class IndexFailed(InputError):
    """The store broke over one question; others may be answered all the same."""


class Companies:
    """Deleted companies are in no answer: the index leaves them out."""

    def __init__(self, index: Index):
        self.url = index.url
        self._index = index
        self._breaker = Breaker((IndexMissing, IndexUnusable))

    @property
    def kind(self) -> str:
        return "elasticsearch" if self.url.startswith(("http://", "https://")) else "lance"

    def model(self) -> str:
        return self._ask(lambda: self._index.spec()).model

    def status(self) -> Status:
        return self._ask(self._index.status)

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
        return self._ask(lambda: self._index.get_many(asked)) if asked else {}

    def require(self, ids: Iterable[str]) -> None:
        """CompanyMissing unless all are there."""
        asked = list(ids)
        known = self._ask(lambda: self._index.known(asked))
        for id in asked:
            if id not in known or known[id].deleted:
                raise CompanyMissing(self.url, id)

    def nearest(self, vector: Vector, k: int, model: str, filters: Filters) -> list[Hit]:
        return self._ask(lambda: self._index.nearest(vector, k, model=model, filters=filters))

    def words(self, text: str, k: int, filters: Filters) -> list[Hit]:
        return self._ask(lambda: self._index.search(text, k, filters=filters))

    def ranked(self, text: str, vector: Vector, depth: int, model: str, filters: Filters) -> list[str]:
        """Ids by meaning, words and name: one list and its beginnings, whatever the depth."""
        return self._ask(lambda: self._index.ranked(text, vector, depth, model=model, filters=filters))

    def suggest(self, prefix: str, k: int) -> list[Suggestion]:
        return self._ask(lambda: self._index.suggest(prefix, k))

    def facets(self, filters: Filters, top: int) -> Facets:
        return self._ask(lambda: self._index.facets(filters, top))

    def _ask(self, work: Callable[[], Answer]) -> Answer:
        def guarded() -> Answer:
            try:
                return work()
            except InputError:
                raise
            except Exception as error:  # each store has exceptions of its own, and their classes cost seconds to import
                # The frames alone: a store's message may quote what was asked.
                frames = "".join(traceback.format_tb(error.__traceback__))
                log.error("the index failed: %s\n%s", type(error).__name__, frames)
                raise IndexFailed(f"the index at {self.url} failed ({type(error).__name__})") from error

        return self._breaker.call(guarded)
