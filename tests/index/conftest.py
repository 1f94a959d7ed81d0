"""Back ends to hold to the contract. One more is one more fixture here and one more parameter of `backend`."""

import itertools

import pytest
from certificates import write_certificates
from companies import DIMENSION, MODEL
from real_servers import running

from index.base import Index, Spec
from index.open import open_index
from infra.local.elasticsearch import Elasticsearch, Security

PASSWORD = "not-a-secret"


class Backend:
    """A new address for each index."""

    def __init__(self, base: str):
        self._base, self._numbers = base, itertools.count()

    def new_url(self) -> str:
        return f"{self._base}-{next(self._numbers)}"


@pytest.fixture(scope="session")
def lance(tmp_path_factory):
    return Backend(f"lance://{tmp_path_factory.mktemp('lance')}/index")


@pytest.fixture(scope="session")
def elasticsearch(elasticsearch_server):
    return Backend(f"{elasticsearch_server.address}/companies")


@pytest.fixture(scope="session")
def secure_elasticsearch(tmp_path_factory):
    """With TLS and a password, which are in the environment while it is used."""
    files = write_certificates(tmp_path_factory.mktemp("certificates"))
    security = Security(files.server, files.server_key, PASSWORD)
    with running(lambda: Elasticsearch(security)) as server, pytest.MonkeyPatch.context() as environment:
        environment.setenv("PAUSE_ES_USER", "elastic")
        environment.setenv("PAUSE_ES_PASSWORD", PASSWORD)
        environment.setenv("PAUSE_ES_CA", str(files.authority))
        yield Backend(f"{server.address}/secure")


@pytest.fixture(scope="session", params=["lance", "elasticsearch", "secure_elasticsearch"])
def backend(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def url(backend) -> str:
    """An address with nothing at it."""
    return backend.new_url()


@pytest.fixture
def index(url) -> Index:
    return open_index(url, create=Spec(MODEL, DIMENSION))
