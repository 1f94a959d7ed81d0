"""One company, who is like it, names as typed, facets; nothing that was deleted, nothing that a filter could inject."""

from urllib.parse import quote

import pytest
from answering import given
from companies import MODEL, company
from market import deleted, ids

INJECTIONS = [
    "' OR 1=1 --",
    "'; DROP TABLE companies; --",
    "Transport' OR sector = 'Finance",
    "\\' OR '1'='1",
    "%",
    "*",
    '{"match_all": {}}',
    "\u2019 OR 1=1",
    "\x00",
    "') OR array_has_any(tags, ['cheap",
]


def test_a_company_is_answered_with_all_its_fields(client):
    assert client.get("/v1/companies/air-a").json() == {
        "id": "air-a",
        "name": "Alpha Air",
        "description": "Flies people cheaply. Sells seats online.",
        "sector": "Transport",
        "industry": "airlines",
        "country": "Ireland",
        "website": "",
        "tags": ["cheap", "air"],
        "updated_at": "2023-11-14T22:13:20Z",
    }


def test_an_unknown_company_is_a_404_in_one_sentence(client):
    answer = client.get("/v1/companies/nobody")
    assert answer.status_code == 404
    error = answer.json()["error"]
    assert (error["code"], "nobody" in error["message"]) == ("not_found", True)


@pytest.mark.parametrize("id", ["a/b", "a b", "ü", "🙂", "<script>", "../x", "similar"])
def test_any_id_that_an_index_takes_can_be_asked_for(client, index, id):
    index.write([company(id)])
    assert client.get(f"/v1/companies/{quote(id, safe='')}").json()["id"] == id
    assert client.get(f"/v1/companies/{quote(id, safe='')}/similar").json()["anchor"]["id"] == id


def test_the_nearest_come_first_and_the_anchor_is_not_among_them(client):
    answer = client.get("/v1/companies/air-a/similar")
    assert ids(answer) == ["air-b", "ship", "bank"]
    found = answer.json()
    assert [hit["score"] for hit in found["hits"]] == pytest.approx([0.8, 0.6, 0.0], abs=1e-5)
    assert [hit["rank"] for hit in found["hits"]] == [1, 2, 3]
    assert (found["anchor"]["id"], found["model"], found["scored_by"]) == ("air-a", MODEL, "cosine")
    assert [hit["why"] for hit in found["hits"]] == [None] * 3


def test_pages_follow_each_other_and_the_last_says_how_many_there_are(client):
    first = client.get("/v1/companies/air-a/similar", params={"k": 2})
    second = client.get("/v1/companies/air-a/similar", params={"k": 2, "offset": 2})
    assert (ids(first), first.json()["total_known"]) == (["air-b", "ship"], None)
    assert (ids(second), second.json()["total_known"]) == (["bank"], 3)
    assert second.json()["hits"][0]["rank"] == 3


def test_filters_take_any_value_of_a_field_and_all_fields(client):
    def like(**filters):
        return ids(client.get("/v1/companies/air-a/similar", params=filters))

    assert like(sector=["Transport"]) == ["air-b", "ship"]
    assert like(country=["Greece", "Ireland"]) == ["ship", "bank"]
    assert like(sector=["Transport"], country=["Ireland", "Greece"]) == ["ship"]
    assert like(tags=["cheap", "loans"]) == ["air-b", "bank"]
    assert like(industry=["mining"]) == []


@pytest.mark.parametrize("field", ["sector", "industry", "country", "tags"])
@pytest.mark.parametrize("value", INJECTIONS)
def test_what_looks_like_a_query_is_a_value_that_no_company_has(client, field, value):
    before = client.get("/v1/companies/air-a/similar").json()["hits"]
    assert ids(client.get("/v1/companies/air-a/similar", params={field: value})) == []
    assert ids(client.get("/v1/companies/air-a/similar", params={field: [value, "Transport", "airlines"]})) in (
        [],
        ["air-b", "ship"],
        ["air-b"],
    )
    assert ids(client.post("/v1/search", json={"text": "money", "filters": {field: [value]}})) == []
    assert client.get("/v1/facets", params={field: value}).json()["facets"]["sector"] == []
    assert client.get("/v1/companies/air-a/similar").json()["hits"] == before


@pytest.mark.parametrize("value", INJECTIONS)
def test_ids_and_prefixes_do_not_inject_either(client, value):
    assert client.post("/v1/search", json={"like": [value]}).status_code == 404
    answer = client.get("/v1/suggest", params={"prefix": value})
    assert (answer.status_code, answer.json()) == (200, {"suggestions": []})


def test_names_are_suggested_as_they_are_typed(client):
    def suggested(prefix, **more):
        found = client.get("/v1/suggest", params={"prefix": prefix, **more}).json()["suggestions"]
        return [one["id"] for one in found]

    assert suggested("AL") == ["air-a"]
    assert suggested("air") == ["air-b", "air-a"]  # the shorter name first
    assert suggested("air", k=1) == ["air-b"]
    assert suggested("") == []


def test_facets_count_what_the_filters_leave(client):
    everything = client.get("/v1/facets").json()["facets"]
    assert everything["sector"] == [{"value": "Transport", "count": 3}, {"value": "Finance", "count": 1}]
    some = client.get("/v1/facets", params={"country": "Ireland"}).json()["facets"]
    assert some["sector"] == [{"value": "Finance", "count": 1}, {"value": "Transport", "count": 1}]


def test_a_deleted_company_appears_nowhere(client, index):
    answered = given(client, candidate="air-b")
    assert "air-b" in ids(client.get("/v1/companies/air-a/similar"))
    index.write([deleted("air-b")])
    assert client.get("/v1/companies/air-b").status_code == 404
    assert client.get("/v1/companies/air-b/similar").status_code == 404
    assert ids(client.get("/v1/companies/air-a/similar")) == ["ship", "bank"]
    for mode in ("hybrid", "vector", "words"):
        assert "air-b" not in ids(client.post("/v1/search", json={"text": "passengers money", "mode": mode}))
    assert client.post("/v1/search", json={"like": ["air-b"]}).status_code == 404
    assert client.get("/v1/suggest", params={"prefix": "beta"}).json()["suggestions"] == []
    assert "Hungary" not in client.get("/v1/facets").text
    assert "air-b" not in client.get("/v1/map", params={"id": "air-a"}).text
    assert client.post("/v1/feedback", json=answered).status_code == 404


def test_one_deleted_between_two_looks_falls_out_of_the_list(client, index, monkeypatch):
    ranked = index.ranked

    def then_deleted(*arguments, **more):
        ranking = ranked(*arguments, **more)
        index.write([deleted("air-b")])
        return ranking

    monkeypatch.setattr(index, "ranked", then_deleted)
    found = ids(client.post("/v1/search", json={"text": "money"}))
    assert "air-b" not in found
    assert "bank" in found


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("/v1/companies/air-a/similar?k=0", "k"),
        ("/v1/companies/air-a/similar?k=101", "k"),
        ("/v1/companies/air-a/similar?offset=-1", "offset"),
        ("/v1/companies/air-a/similar?offset=1001", "offset"),
        ("/v1/companies/air-a/similar?k=ten", "k"),
        ("/v1/suggest", "prefix"),
        ("/v1/suggest?prefix=a&k=51", "k"),
        ("/v1/map?id=air-a&k=301", "k"),
        ("/v1/facets?" + "&".join(["sector=x"] * 51), "sector"),
    ],
)
def test_what_is_out_of_bounds_is_named(client, path, names):
    answer = client.get(path)
    assert answer.status_code == 422
    assert answer.json()["error"]["message"].startswith(f"{names}: ")
