"""Free text, several anchors, anchors to stay away from."""

import numpy as np
import pytest
from companies import DIMENSION, MODEL, company, vector
from encoder import POISON, vector_of
from market import MARKET, ids
from starlette.testclient import TestClient

from common.errors import InputError
from index.base import Spec
from index.open import open_index
from search.app import create_app
from search.ranking.rank import direction
from search.settings import Settings


def cosines(query: np.ndarray) -> dict[str, float]:
    return {one.id: float(query @ one.embedding / np.linalg.norm(query)) for one in MARKET}


def ranked(query: np.ndarray, *without: str) -> list[str]:
    found = cosines(query)
    return sorted(found.keys() - set(without), key=lambda id: -found[id])


def test_a_text_is_encoded_and_its_nearest_are_answered(client, encoder):
    answer = client.post("/v1/search", json={"text": "lends  money", "mode": "vector"})
    query = vector_of("lends money")  # the recipe leaves single blanks
    assert encoder.texts == ["lends money"]
    assert ids(answer) == ranked(query)
    scores = [hit["score"] for hit in answer.json()["hits"]]
    assert scores == pytest.approx(sorted(cosines(query).values(), reverse=True), abs=1e-5)
    assert answer.json()["model"] == MODEL


def test_words_are_found_without_the_endpoint(client, embedder):
    embedder.target = None
    answer = client.post("/v1/search", json={"text": "savings", "mode": "words"})
    assert ids(answer) == ["bank"]
    assert answer.json()["scored_by"] == "words"


def test_hybrid_ranks_by_both_and_scores_by_cosine(client):
    answer = client.post("/v1/search", json={"text": "savings"})
    found = {hit["company"]["id"]: hit["score"] for hit in answer.json()["hits"]}
    assert found == pytest.approx(cosines(vector_of("savings")), abs=1e-5)
    assert ids(answer)[0] == "bank"  # nearest by meaning, and the only one with the word


def test_the_mean_of_several_anchors_is_asked_and_none_of_them_is_answered(client):
    answer = client.post("/v1/search", json={"like": ["air-a", "bank"]})
    # The mean of (1, 0, 0, 0) and (0, 1, 0, 0): ship 1.4 / sqrt(2), air-b 0.8 / sqrt(2)
    assert ids(answer) == ["ship", "air-b"]
    scores = [hit["score"] for hit in answer.json()["hits"]]
    assert scores == pytest.approx([1.4 / 2**0.5, 0.8 / 2**0.5], abs=1e-5)


def test_what_to_stay_away_from_counts_half(client):
    answer = client.post("/v1/search", json={"like": ["air-a"], "unlike": ["bank"]})
    # (1, -0.5, 0, 0) / sqrt(1.25): air-b 0.8, ship 0.6 - 0.4 = 0.2
    assert ids(answer) == ["air-b", "ship"]
    scores = [hit["score"] for hit in answer.json()["hits"]]
    assert scores == pytest.approx([0.8 / 1.25**0.5, 0.2 / 1.25**0.5], abs=1e-5)


def test_a_text_joins_the_anchors_with_the_same_weight(client):
    answer = client.post("/v1/search", json={"text": "ships", "like": ["bank"], "mode": "vector"})
    assert ids(answer) == ranked(vector_of("ships") + vector(0, 1, 0, 0), "bank")


def test_direction_takes_unit_vectors():
    # (2, 0) and (0, 5) count alike; less half of (0, 1): (0.5, 0.5 - 0.5)
    towards = [np.array([2, 0], np.float32), np.array([0, 5], np.float32)]
    assert direction(towards, [np.array([0, 3], np.float32)]).tolist() == [1, 0]


def test_anchors_that_cancel_out_are_told():
    # The mean of (1, 0) and (0, 1) and (-1, 0) and (0, -1) is nowhere.
    around = [np.array(one, np.float32) for one in ([1, 0], [0, 1], [-1, 0], [0, -1])]
    with pytest.raises(InputError, match="cancel out"):
        direction(around, [])


def test_offset_goes_on_where_the_page_before_ended(client):
    def page(offset):
        return ids(client.post("/v1/search", json={"text": "x", "mode": "vector", "k": 2, "offset": offset}))

    assert page(0) + page(2) == ranked(vector_of("x"))


@pytest.fixture(params=["lance", "elasticsearch"])
def large(request, tmp_path, embedder):
    """A client of the service over 400 companies of few words, so that many are alike."""
    if request.param == "lance":
        url = str(tmp_path / "large")
    else:
        url = f"{request.getfixturevalue('elasticsearch_server').address}/large"
    made = open_index(url, create=Spec(MODEL, DIMENSION))
    trades, generator = ("steel", "glass", "paper", "cement", "timber"), np.random.default_rng(1)
    made.write(
        [
            company(f"{number}", embedding=generator.normal(size=4), description=" ".join(generator.choice(trades, 3)))
            for number in range(400)
        ]
    )
    made.refresh()
    with TestClient(create_app(made, embedder, Settings(rate=0)), "http://localhost") as client:
        yield client


@pytest.mark.parametrize("k", [7, 10, 25])
def test_pages_of_any_size_are_cut_from_one_list(large, k):
    body = {"text": "steel glass"}
    together = ids(large.post("/v1/search", json={**body, "k": 80}))
    pages = [large.post("/v1/search", json={**body, "k": k, "offset": offset}) for offset in range(0, 80, k)]
    following = [id for page in pages for id in ids(page)]
    assert following[:80] == together
    assert len(set(following)) == len(following) >= 80


def test_the_last_page_tells_how_many_there_are_and_none_is_left_out(large):
    body = {"text": "steel glass", "k": 100}
    pages = [large.post("/v1/search", json={**body, "offset": offset}) for offset in range(0, 500, 100)]
    assert sorted(id for page in pages for id in ids(page)) == sorted(map(str, range(400)))
    assert [page.json()["total_known"] for page in pages] == [None, None, None, None, 400]


def test_documents_are_fetched_once_and_only_those_of_the_page(client, index, monkeypatch):
    asked = []
    get_many = index.get_many
    monkeypatch.setattr(index, "get_many", lambda some: asked.append(list(some)) or get_many(asked[-1]))
    answer = client.post("/v1/search", json={"text": "money", "k": 2, "offset": 1})
    assert asked == [ids(answer)] and len(asked[0]) == 2


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "text or companies"),
        ({"text": "  "}, "text or companies"),
        ({"unlike": ["bank"]}, "text or companies"),
        ({"like": ["bank"], "mode": "words"}, "mode words needs a text"),
        ({"text": "x", "mode": "magic"}, "mode: "),
        ({"text": "x", "k": 101}, "k: "),
        ({"text": "x", "offset": 1001}, "offset: "),
        ({"text": "x" * 10_001}, "text: "),
        ({"text": "x", "txet": "y"}, "txet: "),
        ({"text": "x", "filters": {"sectr": ["y"]}}, "filters.sectr: "),
        ({"text": "x", "filters": {"sector": "y"}}, "filters.sector: "),
        ({"like": ["x"] * 21}, "like: "),
        ({"like": [""]}, "like.0: "),
        ([], "the body: "),
    ],
)
def test_a_question_that_makes_no_sense_is_told_why(client, body, said):
    answer = client.post("/v1/search", json=body)
    assert answer.status_code == 422
    assert said in answer.json()["error"]["message"]


def test_a_body_that_is_no_json_is_told(client):
    answer = client.post("/v1/search", content=b"{", headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["error"]["message"]) == (400, "The body is not JSON.")


def test_half_a_surrogate_pair_is_refused(client):
    answer = client.post("/v1/search", content=rb'{"text": "\ud800"}', headers={"Content-Type": "application/json"})
    assert answer.status_code == 422


def test_a_text_that_the_endpoint_refuses_is_told_without_being_repeated(client):
    answer = client.post("/v1/search", json={"text": f"some {POISON}"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "text_refused")
    assert POISON not in answer.text


def test_a_question_asked_again_is_not_encoded_again(client, encoder):
    for _ in range(2):
        client.post("/v1/search", json={"text": "ferries"})
    assert encoder.texts.count("ferries") == 1
