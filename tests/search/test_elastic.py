"""The service over a real Elasticsearch: feedback in an index beside the companies, injections, the server away."""

import threading
import time
from dataclasses import replace

import pytest
from answering import given
from companies import DIMENSION, MODEL
from market import MARKET, ids
from starlette.testclient import TestClient
from waiting import wait_until

from index.base import Spec
from index.errors import IndexUnavailable
from index.open import open_index
from search.access.secret import installation_secret
from search.app import create_app
from search.feedback.store import Answer, FeedbackDown, Shown, open_feedback
from search.settings import Settings

ANSWER = Answer("list", 7, "ann", MODEL, "air-a", None, "air-b", "similar", 1)
SHOWN = Shown("list", 5, "ann", MODEL, "öl & <b>", (), (), ("air-b", "ship"), 10)
INJECTIONS = ("' OR 1=1 --", '{"match_all": {}}', "*", "Transport OR Finance", "Trans?ort", "/.*/", "\x00", '"')


@pytest.fixture
def market(elasticsearch_server, request):
    """An index of the market for each test, as the service opens it."""
    url = f"{elasticsearch_server.address}/{request.node.name.replace('[', '-').rstrip(']')}"
    made = open_index(url, create=Spec(MODEL, DIMENSION), retry_seconds=1.0)
    made.write(MARKET)
    made.refresh()
    return made


@pytest.fixture
def client(market, embedder):
    with TestClient(create_app(market, embedder, Settings(rate=0)), base_url="http://localhost") as started:
        yield started


def test_records_come_back_as_they_were(elasticsearch_server):
    url = f"{elasticsearch_server.address}/kept"
    store = open_feedback(url)
    assert list(store.scan()) == []
    store.add([SHOWN, ANSWER])
    open_feedback(url).add([replace(ANSWER, answer="undo")])
    assert sorted(map(str, store.scan())) == sorted(map(str, [SHOWN, ANSWER, replace(ANSWER, answer="undo")]))


def test_a_server_that_is_away_is_told():
    with pytest.raises(FeedbackDown, match="cannot be written"):
        open_feedback("http://127.0.0.1:1/none").add([ANSWER])


def test_the_service_answers_as_over_the_embedded_index(client):
    found = client.get("/v1/companies/air-a/similar?why=true")
    assert ids(found) == ["air-b", "ship", "bank"]
    assert all(hit["why"] for hit in found.json()["hits"])
    assert ids(client.post("/v1/search", json={"text": "savings", "mode": "words"})) == ["bank"]
    assert set(ids(client.post("/v1/search", json={"text": "savings"}))) == {"air-a", "air-b", "ship", "bank"}
    suggested = client.get("/v1/suggest?prefix=AI").json()["suggestions"]
    assert [one["id"] for one in suggested] == ["air-b", "air-a"]
    facets = client.get("/v1/facets?country=Ireland").json()["facets"]
    assert facets["sector"] == [{"value": "Finance", "count": 1}, {"value": "Transport", "count": 1}]
    assert {point["id"] for point in client.get("/v1/map?id=air-a").json()["points"]} == {one.id for one in MARKET}
    assert client.get("/v1/status").json()["index"] == "elasticsearch"
    assert client.get("/readyz").status_code == 200


def test_answers_and_lists_are_kept_beside_the_index(client, market):
    assert client.post("/v1/feedback", json=given(client)).status_code == 204
    client.__exit__(None, None, None)  # what waits is written
    kinds = sorted(type(record).__name__ for record in open_feedback(market.url).scan())
    assert kinds == ["Answer", "Shown"]


@pytest.mark.parametrize("field", ["sector", "industry", "country", "tags"])
def test_what_looks_like_a_query_is_a_value_that_no_company_has(client, field):
    before = client.get("/v1/companies/air-a/similar").json()["hits"]
    for value in INJECTIONS:
        assert ids(client.get("/v1/companies/air-a/similar", params={field: value})) == []
        assert ids(client.post("/v1/search", json={"text": "money", "filters": {field: [value]}})) == []
        assert client.get("/v1/facets", params={field: value}).json()["facets"]["sector"] == []
    assert client.get("/v1/companies/air-a/similar").json()["hits"] == before


@pytest.mark.parametrize("value", INJECTIONS)
def test_ids_and_prefixes_do_not_inject_either(elasticsearch_server, embedder, value):
    index = open_index(f"{elasticsearch_server.address}/injected", create=Spec(MODEL, DIMENSION), retry_seconds=1.0)
    index.write(MARKET)
    index.refresh()
    with TestClient(create_app(index, embedder, Settings(rate=0)), base_url="http://localhost") as client:
        assert client.post("/v1/search", json={"like": [value]}).status_code == 404
        assert client.get("/v1/suggest", params={"prefix": value}).json() == {"suggestions": []}


def test_a_server_that_goes_and_comes_is_told_soon_and_found_again(client, elasticsearch_server):
    assert client.get("/readyz").status_code == 200
    answered = given(client)
    restarting = threading.Thread(target=elasticsearch_server.restart)
    restarting.start()
    try:
        wait_until(lambda: client.get("/readyz").status_code == 503, seconds=30)
        assert "did not answer" in client.get("/readyz").json()["index"]
        began = time.monotonic()
        answers = [client.get("/v1/companies/air-a/similar") for _ in range(3)]
        assert time.monotonic() - began < 5
        told = {(answer.status_code, answer.json()["error"]["code"]) for answer in answers}
        assert told == {(503, "index_down")}
        kept = client.post("/v1/feedback", json=answered)
        assert kept.status_code == 503
    finally:
        restarting.join()
    wait_until(lambda: client.get("/readyz").status_code == 200, seconds=30)
    assert ids(client.get("/v1/companies/air-a/similar")) == ["air-b", "ship", "bank"]
    assert client.post("/v1/feedback", json=answered).status_code == 204


# the secret


def test_services_over_one_index_share_a_secret_and_take_answers_to_each_others_lists(market, embedder):
    one, other = (TestClient(create_app(market, embedder, Settings(rate=0)), "http://localhost") for _ in range(2))
    assert other.post("/v1/feedback", json=given(one)).status_code == 204
    forged = other.post("/v1/feedback", json=given(one, shown="x"))
    assert (forged.status_code, forged.json()["error"]["code"]) == (422, "not_shown")
    (kept,) = open_feedback(market.url).scan()
    assert kept.shown == kept.shown.partition(".")[0]


def test_services_that_start_together_share_a_secret_too(elasticsearch_server):
    url, found = f"{elasticsearch_server.address}/together", []
    threads = [threading.Thread(target=lambda: found.append(installation_secret(url).key("any"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len(set(found)) == 1
    assert installation_secret(f"{elasticsearch_server.address}/another").key("any") not in found


def test_a_secret_that_is_given_is_not_kept_in_the_server(market, embedder, tmp_path):
    (tmp_path / "secret").write_bytes(b"s" * 32)
    shown = given(
        TestClient(
            create_app(market, embedder, Settings(rate=0, secret_file=str(tmp_path / "secret"))), "http://localhost"
        )
    )
    other = TestClient(create_app(market, embedder, Settings(rate=0)), "http://localhost")
    assert other.post("/v1/feedback", json=shown).status_code == 422


def test_a_server_that_is_away_gives_no_secret(monkeypatch):
    monkeypatch.setattr("search.access.elastic_secret.SECONDS", 0.1)
    with pytest.raises(IndexUnavailable, match="did not answer"):
        installation_secret("http://127.0.0.1:1/none")
