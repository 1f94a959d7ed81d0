"""Index down, endpoint down, wrong model: said which, and over by itself."""

import threading
from dataclasses import replace

import pytest
from companies import DIMENSION, MODEL, OTHER_MODEL, company
from encoder import Encoder
from waiting import wait_until

from index.base import Spec
from index.errors import IndexUnusable
from search.health import Kept
from search.ranking.circuit_breaker import CircuitBreaker
from serving.client import EmbeddingClient


def test_all_is_well(client):
    ready = client.get("/readyz")
    assert (ready.status_code, ready.json()) == (
        200,
        {
            "ready": True,
            "index": "ok",
            "serving": "ok",
            "model": "ok",
            "index_model": MODEL,
            "served_models": [MODEL],
        },
    )


def test_status_says_what_is_in_the_index(client):
    assert client.get("/v1/status").json() == {
        "model": MODEL,
        "dimension": DIMENSION,
        "companies": 4,
        "newest_record": "2023-11-14T22:13:20Z",
        "index": "lance",
        "serving": True,
    }


def test_an_endpoint_that_is_away_is_named_and_comes_back_by_itself(client, embedder):
    there, embedder.target = embedder.target, None
    ready = client.get("/readyz")
    assert ready.status_code == 503
    assert (ready.json()["ready"], ready.json()["index"], ready.json()["model"]) == (False, "ok", None)
    assert "nowhere:1" in ready.json()["serving"]
    refused = client.post("/v1/search", json={"text": "money"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "serving_down")
    assert client.get("/v1/companies/air-a/similar").status_code == 200  # needs no endpoint
    assert client.get("/v1/status").json()["serving"] is False
    assert client.get("/healthz").status_code == 200
    embedder.target = there
    wait_until(lambda: client.get("/readyz").status_code == 200, seconds=30)
    assert client.post("/v1/search", json={"text": "money"}).status_code == 200


def test_a_real_endpoint_that_stops_is_a_503(client, encoder):
    encoder.stop()
    refused = client.post("/v1/search", json={"text": "money"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "serving_down")


def test_an_index_that_is_away_is_named_and_comes_back_by_itself(client, tmp_path):
    (tmp_path / "index").rename(tmp_path / "elsewhere")
    ready = client.get("/readyz")
    assert ready.status_code == 503
    assert ready.json()["serving"] == "ok"
    assert "no index at" in ready.json()["index"]
    for answered in (client.get("/v1/companies/air-a/similar"), client.get("/v1/facets"), client.get("/v1/status")):
        assert (answered.status_code, answered.json()["error"]["code"]) == (503, "index_down")
    (tmp_path / "elsewhere").rename(tmp_path / "index")
    wait_until(lambda: client.get("/readyz").status_code == 200, seconds=30)
    assert client.get("/v1/companies/air-a/similar").status_code == 200


def test_another_model_is_a_503_that_names_the_fix_and_passes(client, embedder, index):
    right, other = embedder.target, Encoder(OTHER_MODEL)
    try:
        with EmbeddingClient([other.address], deadline=1.0) as embedder.target:
            refused = client.post("/v1/search", json={"text": "money"})
            error = refused.json()["error"]
            assert (refused.status_code, error["code"]) == (503, "wrong_model")
            assert MODEL in error["message"]
            assert OTHER_MODEL in error["message"]
            assert f"python -m pipelines.reindex --index {index.url}" in error["fix"]
            ready = client.get("/readyz")
            assert (ready.status_code, ready.json()["index"], ready.json()["serving"]) == (503, "ok", "ok")
            assert "pipelines.reindex" in ready.json()["model"]
    finally:
        other.stop()
    embedder.target = right
    wait_until(lambda: client.get("/readyz").status_code == 200, seconds=30)
    assert client.post("/v1/search", json={"text": "money"}).status_code == 200


def test_vectors_of_a_former_model_are_not_taken_from_the_cache(client, embedder, index):
    assert client.post("/v1/search", json={"text": "money", "mode": "vector"}).status_code == 200
    after = index.successor(Spec(OTHER_MODEL, DIMENSION))
    after.write([replace(company("air-a"), model=OTHER_MODEL)])
    after.go_live()
    assert client.post("/v1/search", json={"text": "money", "mode": "vector"}).json()["error"]["code"] == "wrong_model"
    other = Encoder(OTHER_MODEL)
    try:
        with EmbeddingClient([other.address], deadline=1.0) as embedder.target:
            assert client.post("/v1/search", json={"text": "money", "mode": "vector"}).json()["model"] == OTHER_MODEL
        assert other.texts == ["money"]
    finally:
        other.stop()


# the parts


def test_one_in_a_while_tries_again_and_the_others_are_told():
    now, calls = [0.0], []
    breaker = CircuitBreaker((IndexUnusable,), pause=1.0, clock=lambda: now[0])

    def fails():
        calls.append(now[0])
        raise IndexUnusable("away")

    for now[0] in (0.0, 0.5, 0.9, 1.0, 1.5, 2.0):
        with pytest.raises(IndexUnusable, match="away"):
            breaker.call(fails)
    assert calls == [0.0, 1.0, 2.0]
    now[0] = 3.0
    assert breaker.call(lambda: "back") == "back"
    assert breaker.call(lambda: "at once") == "at once"


def test_other_failures_stop_nobody():
    breaker = CircuitBreaker((IndexUnusable,))
    with pytest.raises(KeyError):
        breaker.call(lambda: {}["x"])
    assert breaker.call(lambda: 1) == 1


def test_while_one_asks_again_the_others_get_what_is_known():
    now, asked, go_on = [0.0], threading.Event(), threading.Event()
    answers = iter(["first", "second"])

    def ask():
        answer = next(answers)
        if answer == "second":
            asked.set()
            assert go_on.wait(5)
        return answer

    kept = Kept(ask, seconds=1.0, clock=lambda: now[0])
    assert [kept.get(), kept.get()] == ["first", "first"]
    now[0] = 2.0
    slow = threading.Thread(target=kept.get)
    slow.start()
    assert asked.wait(5)
    assert kept.get() == "first"
    go_on.set()
    slow.join()
    assert kept.get() == "second"
