"""Whatever a stranger sends, the service answers as its own document says."""

from dataclasses import dataclass

import hypothesis
import pytest
import schemathesis
from companies import DIMENSION, MODEL
from encoder import Encoder
from fastapi.routing import iter_route_contexts
from market import MARKET
from schemathesis import APIOperation, GenerationMode
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

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
WITHOUT_PARAMETERS = {"GET /healthz", "GET /readyz", "GET /metrics", "GET /v1/status"}  # nothing to get wrong


@dataclass(frozen=True)
class Api:
    """Its operations by the document, and by the app itself how many there are."""

    operations: list[APIOperation]
    routes: int


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    encoder = Encoder()
    index = open_index(str(tmp_path_factory.mktemp("schema") / "index"), create=Spec(MODEL, DIMENSION))
    index.write(MARKET)
    with EmbeddingClient([encoder.address], deadline=5.0) as client:
        app = create_app(index, client, Settings(rate=0, hosts=("*",)))  # its client has a name of its own
        schema = schemathesis.openapi.from_asgi("/openapi.json", app)
        told = [route for route in iter_route_contexts(app.routes) if getattr(route, "include_in_schema", False)]
        yield Api([found.ok() for found in schema.get_all_operations()], sum(len(route.methods) for route in told))
    encoder.stop()


def tried(operation, mode: GenerationMode) -> set[int]:
    """The statuses that came back."""
    statuses = set()

    @hypothesis.given(case=operation.as_strategy(mode))
    @hypothesis.settings(
        max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(hypothesis.HealthCheck)
    )
    def answered(case):
        statuses.add(case.call_and_validate(checks=CHECKS).status_code)

    answered()
    return statuses


def test_what_the_document_allows_is_answered_as_it_says(api):
    assert len(api.operations) == api.routes >= 12
    statuses = set().union(*(tried(operation, GenerationMode.POSITIVE) for operation in api.operations))
    assert statuses >= {200, 404}


def test_what_the_document_does_not_allow_is_refused_as_it_says(api):
    taking = [one for one in api.operations if one.definition.raw.keys() & {"parameters", "requestBody"}]
    assert {one.label for one in api.operations} - {one.label for one in taking} >= WITHOUT_PARAMETERS
    assert len(taking) >= 8
    statuses = set().union(*(tried(operation, GenerationMode.NEGATIVE) for operation in taking))
    assert 422 in statuses
