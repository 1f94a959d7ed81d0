"""The real service over a real embedded index and an endpoint that speaks the real protocol."""

from contextlib import ExitStack

import pytest
from companies import DIMENSION, MODEL
from encoder import Encoder
from market import MARKET, Switch
from starlette.testclient import TestClient

from index.base import Spec
from index.open import open_index
from search.app import create_app
from search.settings import Settings
from serving.client import EmbeddingClient


@pytest.fixture
def encoder():
    running = Encoder()
    yield running
    running.stop()


@pytest.fixture
def embedder(encoder):
    with EmbeddingClient([encoder.address], deadline=1.0) as connected:
        yield Switch(connected)


@pytest.fixture
def index(tmp_path):
    made = open_index(str(tmp_path / "index"), create=Spec(MODEL, DIMENSION))
    made.write(MARKET)
    return made


@pytest.fixture
def serve(index, embedder):
    """A client of the service with the given settings."""
    with ExitStack() as stack:

        def start(**settings):
            app = create_app(index, embedder, Settings(**{"rate": 0, **settings}))
            return stack.enter_context(TestClient(app, base_url="http://localhost"))

        yield start


@pytest.fixture
def client(serve):
    return serve()
