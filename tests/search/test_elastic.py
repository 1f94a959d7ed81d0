"""The service over a real Elasticsearch: feedback in an index beside the companies, injections, the server away."""

from dataclasses import replace

import pytest
from companies import DIMENSION, MODEL
from market import MARKET, ids
from real_servers import running
from starlette.testclient import TestClient

from index.base import Spec
from index.open import open_index
from infra.local.elasticsearch import Elasticsearch
from search.app import create_app
from search.feedback import Answer, FeedbackDown, Shown, open_feedback
from search.settings import Settings

ANSWER = Answer("list", 7, "ann", MODEL, "air-a", None, "air-b", "similar", 1)
SHOWN = Shown("list", 5, "ann", MODEL, "öl & <b>", (), (), ("air-b", "ship"), 10)


@pytest.fixture(scope="module")
def address():
    with running(Elasticsearch) as server:
        yield server.address


@pytest.fixture(scope="module")
def index(address):
    made = open_index(f"{address}/market", create=Spec(MODEL, DIMENSION))
    made.write(MARKET)
    made.refresh()
    return made


def test_records_come_back_as_they_were(address):
    store = open_feedback(f"{address}/kept")
    assert list(store.scan()) == []
    store.add([SHOWN, ANSWER])
    open_feedback(f"{address}/kept").add([replace(ANSWER, answer="undo")])
    assert sorted(map(str, store.scan())) == sorted(map(str, [SHOWN, ANSWER, replace(ANSWER, answer="undo")]))


def test_a_server_that_is_away_is_told():
    with pytest.raises(FeedbackDown, match="cannot be written"):
        open_feedback("http://127.0.0.1:1/none").add([ANSWER])


def test_the_service_answers_as_over_the_embedded_index(index, embedder):
    with TestClient(create_app(index, embedder, Settings(rate=0))) as client:
        found = client.get("/v1/companies/air-a/similar?why=true")
        assert ids(found) == ["air-b", "ship", "bank"]
        assert all(hit["why"] for hit in found.json()["hits"])
        assert ids(client.post("/v1/search", json={"text": "savings", "mode": "words"})) == ["bank"]
        assert set(ids(client.post("/v1/search", json={"text": "savings"}))) == {"air-a", "air-b", "ship", "bank"}
        for value in ("' OR 1=1 --", '{"match_all": {}}', "*", "Transport OR Finance"):
            assert ids(client.get("/v1/companies/air-a/similar", params={"sector": value})) == []
        assert client.get("/v1/status").json()["index"] == "elasticsearch"
        assert client.get("/readyz").status_code == 200
        given = {"shown": "x", "anchor": "air-a", "candidate": "air-b", "answer": "similar", "rank": 1}
        assert client.post("/v1/feedback", json=given).status_code == 204
    kinds = sorted(type(record).__name__ for record in open_feedback(index.url).scan())
    assert kinds == ["Answer", "Shown", "Shown", "Shown", "Shown", "Shown", "Shown", "Shown"]
