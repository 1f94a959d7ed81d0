"""Back ends to hold to the contract. One more is one more class here and one more parameter of `backend`."""

import itertools

import pytest
from companies import DIMENSION, MODEL

from index.base import Index, Spec
from index.open import open_index


class Lance:
    """A new directory for each index."""

    def __init__(self, directory):
        self._directory, self._numbers = directory, itertools.count()

    def new_url(self) -> str:
        return f"lance://{self._directory}/index-{next(self._numbers)}"


@pytest.fixture(scope="session", params=["lance"])
def backend(request, tmp_path_factory):
    return {"lance": Lance}[request.param](tmp_path_factory.mktemp(request.param))


@pytest.fixture
def url(backend) -> str:
    """An address with nothing at it."""
    return backend.new_url()


@pytest.fixture
def index(url) -> Index:
    return open_index(url, create=Spec(MODEL, DIMENSION))
