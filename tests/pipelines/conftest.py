import itertools
from collections import Counter

import pytest
from companies import DIMENSION, MODEL
from encoder import Encoder
from moving import NewModel

from index.base import Spec
from index.open import open_index
from pipelines.metrics import counters

_numbers = itertools.count()


@pytest.fixture
def encoder():
    running = Encoder()
    yield running
    running.stop()


@pytest.fixture
def new_model():
    running = NewModel()
    yield running
    running.stop()


@pytest.fixture(params=["lance", "elasticsearch"])
def index(request, tmp_path):
    """For another model than `new_model`."""
    if request.param == "lance":
        url = str(tmp_path / "index")
    else:
        url = f"{request.getfixturevalue('elasticsearch_server').address}/moved-{next(_numbers)}"
    return open_index(url, create=Spec(MODEL, DIMENSION))


@pytest.fixture
def flags(index, new_model, tmp_path):
    return ["--index", index.url, "--serving", new_model.address, "--dead_letters", str(tmp_path / "letters")]


@pytest.fixture(autouse=True)
def counts_of_its_own(monkeypatch):
    """Only so many names of unknown fields are counted in a process: those of another test must not be among them."""
    for kind in counters.counted_here:
        monkeypatch.setitem(counters.counted_here, kind, Counter())
