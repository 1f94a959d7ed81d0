import pytest
from real_servers import running

from infra.local.elasticsearch import Elasticsearch


@pytest.fixture(scope="session")
def elasticsearch_server():
    with running(Elasticsearch) as server:
        yield server
