"""Whatever a stranger sends, the service answers as its own document says."""

import hypothesis
import pytest
import schemathesis
from companies import DIMENSION, MODEL
from encoder import Encoder
from market import MARKET
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from index.base import Spec
from index.open import open_index
from search.app import create_app
from search.settings import Settings
from serving.client import EmbeddingClient


@pytest.fixture(scope="module")
def schema(tmp_path_factory):
    encoder = Encoder()
    index = open_index(str(tmp_path_factory.mktemp("schema") / "index"), create=Spec(MODEL, DIMENSION))
    index.write(MARKET)
    with EmbeddingClient([encoder.address], deadline=5.0) as client:
        yield schemathesis.openapi.from_asgi("/openapi.json", create_app(index, client, Settings(rate=0)))
    encoder.stop()


documented = schemathesis.pytest.from_fixture("schema")


@documented.parametrize()
@hypothesis.settings(
    max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(hypothesis.HealthCheck)
)
def test_no_answer_is_a_fault_or_undocumented(case):
    case.call_and_validate(
        checks=[
            not_a_server_error,
            status_code_conformance,
            content_type_conformance,
            response_schema_conformance,
        ]
    )
