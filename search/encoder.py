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


class Embedder(Protocol):
    """What the service needs of `serving.client.EmbeddingClient`."""

    def embed(self, texts: Iterable[str]) -> tuple[Vectors, list[str]]: ...

    def contract(self) -> Contract: ...


class TextRefused(InputError):
    """A query that the endpoint will not encode."""


class Encoder:
    def __init__(self, embedder: Embedder, index_url: str, cached: int):
        self._embedder, self._index_url = embedder, index_url
        self._cache = _Cache(cached)
        self._breaker = Breaker((ServingUnavailable,))

    def vector(self, text: str, model: str) -> Vector:
        """[d], of unit length; WrongModel where the endpoint has another model than the one named."""
        found = self.vectors([text], model)
        if text not in found:
            raise TextRefused("the endpoint refuses to encode this text")
        return found[text]

    def vectors(self, texts: Iterable[str], model: str) -> dict[str, Vector]:
        """Of each text, but for those that the endpoint refuses."""
        wanted = list(dict.fromkeys(texts))
        found = {text: vector for text in wanted if (vector := self._cache.get(text, model)) is not None}
        missing = [text for text in wanted if text not in found]
        if missing:
            fresh = self._encode(missing, model)
            self._cache.put(fresh, model)
            found |= fresh
        return found

    def model(self) -> str:
        """The fingerprint of what the endpoint serves now."""
        _, fingerprints = self._breaker.call(lambda: self._embedder.embed(["ready"]))
        return fingerprints[0]

    def _encode(self, texts: list[str], model: str) -> dict[str, Vector]:
        def ask() -> tuple[str, Vectors, list[str]]:
            contract = self._embedder.contract()
            try:
                made = self._embedder.embed(contract.recipe.render({"description": text}) for text in texts)
                return contract.fingerprint, *made
            except TextsRefused as refused:  # the others have their vectors, the refused no fingerprint
                return contract.fingerprint, refused.vectors, refused.fingerprints

        for _ in range(2):  # a model that was changed has its own recipe, which the second time is known
            promised, vectors, fingerprints = self._breaker.call(ask)
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
