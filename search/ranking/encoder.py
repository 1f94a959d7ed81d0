"""Vectors of queries and sentences, by the model whose vectors the index holds; the most recent are cached."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Protocol

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from common.errors import InputError, Outage
from index.document import Vector
from index.errors import WrongModel
from model.contract import Contract
from search.ranking.circuit_breaker import CircuitBreaker
from serving.client import TextsRefused
from serving.endpoint.channel import ModelNotServed, ServingUnavailable

Vectors = NDArray[np.float32]

# Requests for sentences that may wait for the endpoint: fewer than there are threads, so that searches have theirs.
AT_ONCE = 16
TURN_SECONDS = 1.0  # one more waits so long before it goes without


class Embedder(Protocol):
    """What the service needs of `serving.client.EmbeddingClient`."""

    def embed(self, texts: Iterable[str], model: str | None = None) -> tuple[Vectors, list[str]]: ...

    def contract(self, model: str | None = None) -> Contract: ...

    def served(self) -> dict[str, int]: ...


class TextRefused(InputError):
    """A query that the endpoint will not encode."""


class NotServed(WrongModel):
    """The endpoint has not the model that the index is of, whichever others it has."""


class Busy(Outage):
    """As many ask for the vectors of sentences as may at once."""


class Encoder:
    """Texts to vectors, by the model of the index, through a cache and a circuit breaker."""

    def __init__(
        self, embedder: Embedder, index_url: str, cached: int, took: Callable[[float], None] = lambda seconds: None
    ):
        """`took` is told how long the endpoint took for the texts of one question."""
        self._embedder, self._index_url, self._took = embedder, index_url, took
        self._cache = _Cache(cached)
        # Sentences come by the hundred and are a courtesy: whatever becomes of them, what people type is encoded.
        self._queries, self._sentences = CircuitBreaker((ServingUnavailable,)), CircuitBreaker((ServingUnavailable,))
        self._turns = threading.BoundedSemaphore(AT_ONCE)

    def vector(self, text: str, model: str) -> Vector:
        """[d], of unit length, by this very model, newest or not; NotServed where the endpoint has it not."""
        found = self._cache.get(text, model)
        if found is not None:
            return found
        fresh = self._encode([text], model, self._queries)
        self._cache.put(fresh, model)
        if text not in fresh:
            raise TextRefused("the endpoint refuses to encode this text")
        return fresh[text]

    def vectors(self, sentences: Iterable[str], model: str) -> dict[str, Vector]:
        """Of each sentence, but for those that the endpoint refuses; Busy where too many ask at once."""
        wanted = list(dict.fromkeys(sentences))
        found = {text: vector for text in wanted if (vector := self._cache.get(text, model)) is not None}
        missing = [text for text in wanted if text not in found]
        if missing:
            if not self._turns.acquire(timeout=TURN_SECONDS):
                raise Busy("too many sentences are being encoded already")
            try:
                fresh = self._encode(missing, model, self._sentences)
            finally:
                self._turns.release()
            self._cache.put(fresh, model)
            found |= fresh
        return found

    def served(self, model: str | None) -> list[str]:
        """The fingerprints of what the endpoint has now, the newest first, after it has encoded something: by this
        model if it is one of them, else by the newest."""

        def ask() -> list[str]:
            found = list(self._embedder.served())
            with suppress(ModelNotServed):  # it went in this moment
                self._embedder.embed(["ready"], model if model in found else None)
            return found

        return self._queries.call(ask)

    def _encode(self, texts: list[str], model: str, breaker: CircuitBreaker) -> dict[str, Vector]:
        def ask() -> tuple[Vectors, list[str]]:
            began = time.monotonic()
            try:
                recipe = self._embedder.contract(model).recipe
                return self._embedder.embed([recipe.render({"description": text}) for text in texts], model)
            except TextsRefused as refused:  # the others have their vectors, the refused no fingerprint
                return refused.vectors, refused.fingerprints
            except ModelNotServed as error:  # the endpoint is well: whoever asks for a model it has is answered
                raise NotServed(self._index_url, model, next(iter(self._embedder.served()), "")) from error
            finally:
                self._took(time.monotonic() - began)

        vectors, fingerprints = breaker.call(ask)
        return {text: vectors[row] for row, text in enumerate(texts) if fingerprints[row]}


class _Cache:
    """Those used last are kept. A model's vectors are found under its name only."""

    def __init__(self, size: int):
        self._kept = LRUCache(size)  # (model, text) -> vector
        self._lock = threading.Lock()

    def get(self, text: str, model: str) -> Vector | None:
        with self._lock:
            found: Vector | None = self._kept.get((model, text))
            return found

    def put(self, vectors: dict[str, Vector], model: str) -> None:
        with self._lock:
            for text, vector in vectors.items():
                self._kept[model, text] = vector.copy()  # a row would keep all of its batch
