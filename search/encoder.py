"""Vectors of queries and sentences, by the model that the index is of; what was encoded lately is not sent again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from index.document import Vector
from index.errors import WrongModel
from model.contract import Contract
from model.errors import InputError
from search.breaker import Breaker
from serving.channel import ServingUnavailable
from serving.client import TextsRefused

Vectors = NDArray[np.float32]

# Requests for sentences that may wait for the endpoint: fewer than there are threads, so that searches have theirs.
AT_ONCE = 16
TURN_SECONDS = 1.0  # one more waits so long before it goes without


class Embedder(Protocol):
    """What the service needs of `serving.client.EmbeddingClient`."""

    def embed(self, texts: Iterable[str]) -> tuple[Vectors, list[str]]: ...

    def contract(self) -> Contract: ...


class TextRefused(InputError):
    """A query that the endpoint will not encode."""


class Busy(InputError):
    """As many ask for the vectors of sentences as may at once."""


class Encoder:
    def __init__(self, embedder: Embedder, index_url: str, cached: int):
        self._embedder, self._index_url = embedder, index_url
        self._cache = _Cache(cached)
        # Sentences come by the hundred and are a courtesy: whatever becomes of them, what people type is encoded.
        self._queries, self._sentences = Breaker((ServingUnavailable,)), Breaker((ServingUnavailable,))
        self._turns = threading.BoundedSemaphore(AT_ONCE)

    def vector(self, text: str, model: str) -> Vector:
        """[d], of unit length; WrongModel where the endpoint has another model than the one named."""
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

    def model(self) -> str:
        """The fingerprint of what the endpoint serves now."""
        _, fingerprints = self._queries.call(lambda: self._embedder.embed(["ready"]))
        return fingerprints[0]

    def _encode(self, texts: list[str], model: str, breaker: Breaker) -> dict[str, Vector]:
        def ask() -> tuple[str, Vectors, list[str]]:
            contract = self._embedder.contract()
            try:
                made = self._embedder.embed(contract.recipe.render({"description": text}) for text in texts)
                return contract.fingerprint, *made
            except TextsRefused as refused:  # the others have their vectors, the refused no fingerprint
                return contract.fingerprint, refused.vectors, refused.fingerprints

        for _ in range(2):  # a model that was changed has its own recipe, which the second time is known
            promised, vectors, fingerprints = breaker.call(ask)
            if all(made == promised for made in fingerprints if made):
                break
        for made in (*fingerprints, promised):
            if made and made != model:
                raise WrongModel(self._index_url, model, made)
        return {text: vectors[row] for row, text in enumerate(texts) if fingerprints[row]}


class _Cache:
    """Those used last are kept. A model's vectors are found under its name only."""

    def __init__(self, size: int):
        self._size = size
        self._kept: OrderedDict[tuple[str, str], Vector] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, text: str, model: str) -> Vector | None:
        with self._lock:
            vector = self._kept.get((model, text))
            if vector is not None:
                self._kept.move_to_end((model, text))
            return vector

    def put(self, vectors: dict[str, Vector], model: str) -> None:
        with self._lock:
            for text, vector in vectors.items():
                self._kept[model, text] = vector.copy()  # a row would keep all of its batch
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)
