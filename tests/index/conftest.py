"""Back ends to hold to the contract. One more is one more fixture here and one more parameter of `backend`."""

import itertools

import pytest
from certificates import write_certificates
from companies import DIMENSION, MODEL
from memory_backend import MemoryBackend
from real_servers import running

from index.base import Index, Spec
from index.open import BACKENDS, open_index
from infra.local.elasticsearch import Elasticsearch, Security

PASSWORD = "not-a-secret"


class Backend:
    """A new address for each index, and what has to be in the environment of whoever opens one."""

    def __init__(self, base: str, environment: dict[str, str] | None = None):
        self._base, self._numbers = base, itertools.count()
        self.environment = environment or {}

    def new_url(self) -> str:
        return f"{self._base}-{next(self._numbers)}"


@pytest.fixture(scope="session")
def lance(tmp_path_factory):
    return Backend(f"lance://{tmp_path_factory.mktemp('lance')}/index")


@pytest.fixture(scope="session")
def memory():
    """A back end more is a line more."""
    BACKENDS["memory"] = MemoryBackend()
    return Backend("memory://index")


@pytest.fixture(scope="session")
def elasticsearch(elasticsearch_server):
    return Backend(f"{elasticsearch_server.address}/companies")


@pytest.fixture(scope="session")
def secure_elasticsearch(tmp_path_factory):
    """With TLS and a password."""
    files = write_certificates(tmp_path_factory.mktemp("certificates"))
    security = Security(files.server, files.server_key, PASSWORD)
    access = {"PAUSE_ES_USER": "elastic", "PAUSE_ES_PASSWORD": PASSWORD, "PAUSE_ES_CA": str(files.authority)}
    with running(lambda: Elasticsearch(security)) as server:
        yield Backend(f"{server.address}/secure", access)


@pytest.fixture(scope="session", params=["lance", "memory", "elasticsearch", "secure_elasticsearch"])
def shared_backend(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def backend(shared_backend, monkeypatch):
    """Its environment is that of one test: the next one may be about another's."""
    for name, value in shared_backend.environment.items():
        monkeypatch.setenv(name, value)
    return shared_backend


@pytest.fixture
def url(backend) -> str:
    """An address with nothing at it."""
    return backend.new_url()


@pytest.fixture
def index(url) -> Index:
    return open_index(url, create=Spec(MODEL, DIMENSION))
