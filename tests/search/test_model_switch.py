"""A model published, an index moved and moved back while people search: nobody's search fails, no list mixes models."""

from dataclasses import replace

import numpy as np
import pytest
from companies import DIMENSION, MODEL, OTHER_MODEL
from encoder import vector_of
from market import MARKET
from starlette.testclient import TestClient

from index.base import Spec
from index.open import open_index
from search.app import create_app
from search.ranking.rank import direction
from search.settings import Settings

WIDE = 6
TEXT = {"text": "money for everybody"}
QUESTIONS = {
    "similar": lambda client: client.get("/v1/companies/air-a/similar"),
    "text": lambda client: client.post("/v1/search", json={**TEXT, "mode": "vector"}),
    "hybrid": lambda client: client.post("/v1/search", json=TEXT),
    "text and a company": lambda client: client.post("/v1/search", json={**TEXT, "like": ["air-a"]}),
    "words": lambda client: client.post("/v1/search", json={**TEXT, "mode": "words"}),
    "map of a company": lambda client: client.get("/v1/map?id=air-a"),
    "map of a text": lambda client: client.post("/v1/map", json=TEXT),
}


@pytest.fixture(params=["lance", "elasticsearch"])
def index(request, tmp_path):
    """As the service opens it."""
    if request.param == "lance":
        url = str(tmp_path / "index")
    else:
        address = request.getfixturevalue("elasticsearch_server").address
        url = f"{address}/{tmp_path.name.replace('_', '-').lower()}"
    made = open_index(url, create=Spec(MODEL, DIMENSION), retry_seconds=2.0)
    made.write(MARKET)
    made.refresh()
    return made


@pytest.fixture
def client(index, embedder):
    with TestClient(create_app(index, embedder, Settings(rate=0)), base_url="http://localhost") as started:
        yield started


@pytest.fixture
def swap(index):
    """Moves the index to the other model, and back by the next call."""
    writer = open_index(index.url)
    successor = writer.successor(Spec(OTHER_MODEL, WIDE))
    successor.write([replace(one, model=OTHER_MODEL, embedding=vector_of(one.id, WIDE)) for one in MARKET])
    successor.refresh()
    moved = []

    def go():
        moved.append(0)
        successor.go_live() if len(moved) % 2 else writer.rollback()

    return go


@pytest.mark.parametrize("asked", QUESTIONS.values(), ids=QUESTIONS)
def test_publishing_a_model_takes_nobodys_search_away(client, encoder, asked):
    encoder.publish(OTHER_MODEL, "{description}", WIDE)
    answered = asked(client)
    assert answered.status_code == 200, answered.text
    assert answered.json().get("model", MODEL) == MODEL


def test_after_the_move_texts_are_encoded_by_the_next_model_at_once(client, encoder, swap):
    encoder.publish(OTHER_MODEL, "{description}", WIDE)
    for model in (MODEL, OTHER_MODEL, MODEL):
        answered = client.post("/v1/search", json={**TEXT, "mode": "vector"}).json()
        assert answered["model"] == model
        assert len(answered["hits"]) == 4
        swap()


def test_readiness_names_the_model_of_the_index_and_those_of_the_endpoint(client, encoder):
    encoder.publish(OTHER_MODEL, "{description}", WIDE)
    ready = client.get("/readyz")
    assert ready.status_code == 200 and ready.json()["model"] == "ok"
    assert (ready.json()["index_model"], ready.json()["served_models"]) == (MODEL, [OTHER_MODEL, MODEL])


def cosines(model, text, like) -> dict[str, float]:
    """Of all companies to what was asked, as that model alone has them."""
    width = DIMENSION if model == MODEL else WIDE
    vectors = {one.id: one.embedding if model == MODEL else vector_of(one.id, width) for one in MARKET}
    asked = [vector_of(text, width)] if text else []
    towards = direction([*asked, *(vectors[id] for id in like)], [])
    return {id: float(towards @ vector / np.linalg.norm(vector)) for id, vector in vectors.items()}


@pytest.mark.parametrize("asked", QUESTIONS.values(), ids=QUESTIONS)
@pytest.mark.parametrize("step", ["get_many", "spec", "nearest", "ranked"])
def test_a_search_that_a_move_comes_between_is_answered_by_one_model(
    client, index, encoder, swap, monkeypatch, asked, step
):
    """The index moves right after the first of such looks at it."""
    encoder.publish(OTHER_MODEL, "{description}", WIDE)
    look, looks = getattr(index, step), []

    def looked(*arguments, **options):
        found = look(*arguments, **options)
        looks.append(step)
        if len(looks) == 1:
            swap()
        return found

    monkeypatch.setattr(index, step, looked)
    answered = asked(client)
    assert answered.status_code == 200, answered.text
    found = answered.json()
    if found.get("scored_by") == "cosine":
        text = asked is not QUESTIONS["similar"] and TEXT["text"]
        like = ["air-a"] if asked in (QUESTIONS["similar"], QUESTIONS["text and a company"]) else []
        expected = cosines(found["model"], text, like)
        assert {hit["company"]["id"]: hit["score"] for hit in found["hits"]} == pytest.approx(
            {id: score for id, score in expected.items() if id not in like}, abs=0.01
        )


def test_a_model_that_is_not_kept_is_missed_until_the_move_and_no_longer(client, encoder, swap):
    """No breaker that the former model has opened holds up the next one's searches."""
    encoder.publish(OTHER_MODEL, "{description}", WIDE, keep=1)
    for _ in range(3):
        refused = client.post("/v1/search", json=TEXT)
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "wrong_model")
    assert MODEL in refused.json()["error"]["message"] and OTHER_MODEL in refused.json()["error"]["message"]
    assert client.get("/v1/companies/air-a/similar").status_code == 200
    swap()
    assert client.post("/v1/search", json=TEXT).json()["model"] == OTHER_MODEL
