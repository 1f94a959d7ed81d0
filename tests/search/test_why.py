"""The closest pairs of sentences with their places, and what happens where they are not to be had."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from companies import MODEL, OTHER_MODEL, company
from encoder import POISON, Encoder, vector_of

from search.ranking.encoder import AT_ONCE, Busy
from search.ranking.encoder import Encoder as Vectors
from search.ranking.sentences import split
from search.ranking.why import MINE, THEIRS, budgeted, closest
from serving.client import EmbeddingClient
from serving.endpoint.channel import ServingUnavailable


def texts(text: str) -> list[str]:
    return [one.text for one in split(text)]


def test_the_closest_pairs_take_each_row_once():
    left = np.array([[1, 0], [0.8, 0.6]], np.float32)
    right = np.array([[1, 0], [0.96, 0.28], [0, 1]], np.float32)
    # 1.0 for the first two; without them the second row has 0.936 with the second: 0.768 + 0.168
    assert closest(left, right, 5) == [(0, 0, 1.0), (1, 1, pytest.approx(0.936, abs=1e-6))]
    assert closest(left, right, 1) == [(0, 0, 1.0)]


def test_a_hit_is_explained_by_the_closest_sentences(client):
    hits = client.get("/v1/companies/air-a/similar?why=true").json()["hits"]
    anchor, other = "Flies people cheaply. Sells seats online.", hits[0]["company"]["description"]
    pairs = hits[0]["why"]
    assert len(pairs) == 2
    for pair in pairs:
        mine, theirs = pair["mine"], pair["theirs"]
        assert anchor[mine["start"] : mine["end"]] == mine["text"]
        assert other[theirs["start"] : theirs["end"]] == theirs["text"]
        assert (mine["id"], theirs["id"]) == ("air-a", "air-b")
        assert pair["score"] == pytest.approx(float(vector_of(mine["text"]) @ vector_of(theirs["text"])), abs=1e-5)
    best = max(float(vector_of(m) @ vector_of(t)) for m in texts(anchor) for t in texts(other))
    assert pairs[0]["score"] == pytest.approx(best, abs=1e-5)


def test_a_query_explains_by_its_own_sentences(client):
    found = client.post("/v1/search", json={"text": "Cheap flights. New planes.", "why": True}).json()["hits"]
    spans = [pair["mine"] for hit in found for pair in hit["why"]]
    assert spans
    assert {span["text"] for span in spans} <= {"Cheap flights.", "New planes."}
    assert {span["id"] for span in spans} == {None}


def test_several_anchors_say_whose_sentence_it_is(client):
    found = client.post("/v1/search", json={"like": ["air-a", "bank"], "why": True}).json()["hits"]
    assert {pair["mine"]["id"] for hit in found for pair in hit["why"]} <= {"air-a", "bank"}


def test_a_sentence_is_encoded_once(client, encoder):
    client.get("/v1/companies/air-a/similar?why=true")
    assert len(set(encoder.texts)) == len(encoder.texts) > 4
    before = len(encoder.texts)
    client.get("/v1/companies/air-a/similar?why=true")
    client.get("/v1/companies/air-b/similar?why=true")
    assert len(encoder.texts) == before


def test_a_sentence_that_the_endpoint_refuses_is_left_out(client, index):
    index.write([company("odd", embedding=(0.9, 0.1, 0, 0), description=f"All {POISON}. Good one.")])
    hits = {hit["company"]["id"]: hit for hit in client.get("/v1/companies/air-a/similar?why=true").json()["hits"]}
    assert [pair["theirs"]["text"] for pair in hits["odd"]["why"]] == ["Good one."]


def test_a_list_is_shown_without_its_why_while_the_endpoint_is_away(client, embedder):
    embedder.target = None
    answer = client.get("/v1/companies/air-a/similar?why=true")
    assert answer.status_code == 200
    assert [hit["why"] for hit in answer.json()["hits"]] == [None] * 3
    assert "pause_search_unexplained_total 1.0" in client.get("/metrics").text


def test_sentences_of_another_model_explain_nothing(client, embedder):
    other = Encoder(OTHER_MODEL)
    try:
        with EmbeddingClient([other.address], deadline=1.0) as embedder.target:
            answer = client.get("/v1/companies/air-a/similar?why=true")
    finally:
        other.stop()
    assert answer.json()["model"] == MODEL
    assert [hit["why"] for hit in answer.json()["hits"]] == [None] * 3


def test_a_company_of_very_many_sentences_costs_no_more_than_forty(client, index, encoder):
    index.write([company("long", description=" ".join(f"Number {n} is here." for n in range(500)))])
    client.get("/v1/companies/long/similar?why=true&k=1")
    assert sum("Number" in text for text in encoder.texts) == 40


# what it may cost


def test_texts_take_turns_until_the_budget_is_spent():
    long, short = "One. Two. Three. Four. Five.", "Six."
    found, cut = budgeted([long, short, long], 6)  # three, then the two that have a second, then one has a third
    assert [[one.text for one in some] for some in found] == [["One.", "Two.", "Three."], ["Six."], ["One.", "Two."]]
    assert cut
    assert budgeted([long, short], 6) == ([list(split(long)), list(split(short))], False)


def many(index, companies: int, sentences: int) -> None:
    index.write(
        [
            company(f"{place}", description=" ".join(f"Makes {place} of {part}." for part in range(sentences)))
            for place in range(companies)
        ]
    )


def test_reasons_of_a_hundred_companies_cost_no_more_than_the_budget(client, index, encoder):
    many(index, 110, 30)
    answer = client.get("/v1/companies/0/similar?why=true&k=100").json()
    assert len(answer["hits"]) == 100
    assert len(encoder.texts) <= MINE + THEIRS
    assert all(hit["why"] for hit in answer["hits"])
    assert answer["why_left_out"] == "too_many_sentences"


def test_nothing_is_left_out_of_an_ordinary_answer(client):
    assert client.get("/v1/companies/air-a/similar?why=true").json()["why_left_out"] is None
    assert client.get("/v1/companies/air-a/similar").json()["why_left_out"] is None


class TooMuch:
    """An endpoint that encodes one text at a time, and has no answer to more."""

    def __init__(self, target):
        self._target, self.contract, self.served = target, target.contract, target.served

    def embed(self, texts, model=None):
        texts = list(texts)
        if len(texts) > 1:
            raise ServingUnavailable("serving at nowhere:1 gave no answer within its deadline")
        return self._target.embed(texts, model)


def test_text_search_goes_on_while_reasons_fail(client, embedder):
    embedder.target = TooMuch(embedder.target)
    for number in range(3):  # each is a text that nobody asked before
        answer = client.post("/v1/search", json={"text": f"Cheap flights. Number {number}.", "why": True})
        assert answer.status_code == 200, answer.text
        assert [hit["why"] for hit in answer.json()["hits"]] == [None] * 4
        assert answer.json()["why_left_out"] == "serving_down"
    assert client.get("/readyz").json()["ready"]


class Slow:
    """An endpoint that answers more than one text only when told to."""

    def __init__(self, target):
        self._target, self.contract, self.served = target, target.contract, target.served
        self.waiting, self.go_on = threading.Semaphore(0), threading.Event()

    def embed(self, texts, model=None):
        texts = list(texts)
        if len(texts) > 1:
            self.waiting.release()
            assert self.go_on.wait(60)
        return self._target.embed(texts, model)


def test_text_search_has_its_way_while_reasons_are_slow(embedder):
    slow = Slow(embedder)
    encoder = Vectors(slow, "an index", 100)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        asked = [pool.submit(encoder.vectors, [f"a {n}", f"b {n}"], MODEL) for n in range(AT_ONCE)]
        try:
            assert all(slow.waiting.acquire(timeout=60) for _ in range(AT_ONCE))
            with pytest.raises(Busy):
                encoder.vectors(["one", "more"], MODEL)
            assert encoder.vector("a question", MODEL).shape == (4,)
        finally:
            slow.go_on.set()
        assert all(len(one.result()) == 2 for one in asked)
