"""Sentences with their places, the closest pairs, and what happens where they are not to be had."""

import numpy as np
import pytest
from companies import MODEL, OTHER_MODEL, company
from encoder import POISON, Encoder, vector_of

from search.sentences import split
from search.why import closest
from serving.client import EmbeddingClient


def texts(text: str) -> list[str]:
    found = list(split(text))
    assert all(text[one.start : one.end] == one.text for one in found)
    return [one.text for one in found]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One here. Two there! Three?", ["One here.", "Two there!", "Three?"]),
        ("No stop at the end", ["No stop at the end"]),
        ("By Foo Inc. and Bar Ltd. in the U.S. too. Sells.", ["By Foo Inc. and Bar Ltd. in the U.S. too.", "Sells."]),
        ("Costs 3.50 each. Ships in 2.5 days.", ["Costs 3.50 each.", "Ships in 2.5 days."]),
        ("Led by J. Smith. Founded 1999.", ["Led by J. Smith.", "Founded 1999."]),
        ('He said "Go." Then left.', ['He said "Go."', "Then left."]),
        ("Wait... what? Yes.", ["Wait... what?", "Yes."]),
        ("First part\n\nsecond part", ["First part", "second part"]),
        ("Makes:\n- anvils\n- bells", ["Makes:", "- anvils", "- bells"]),
        ("A line\nthat goes on.", ["A line\nthat goes on."]),
        ("電車を作る。船も作る。", ["電車を作る。", "船も作る。"]),
        ("  Blanks around.   And between.  ", ["Blanks around.", "And between."]),
        ("🙂 Smiles. 🙃 Frowns.", ["🙂 Smiles.", "🙃 Frowns."]),
        ("", []),
        (" ... !!! ", []),
    ],
)  # fmt: skip
def test_sentences_are_cut_where_they_end(text, sentences):
    assert texts(text) == sentences


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
