"""What the service tells Prometheus, also of the index and of parts that are away."""

import re

import pytest
from companies import MODEL
from waiting import wait_until

from index.errors import IndexUnusable


def samples(client) -> dict[str, float]:
    page = client.get("/metrics")
    assert page.status_code == 200
    return {name: float(value) for name, value in re.findall(r"^(\S+?) (\S+)$", page.text, re.M)}


def test_a_question_is_timed_with_what_index_and_endpoint_took_of_it(client):
    assert client.post("/v1/search", json={"text": "money"}).status_code == 200
    found = samples(client)
    assert found['pause_search_seconds_count{route="/v1/search",status="200"}'] == 1
    assert found["pause_search_encoding_seconds_count"] == 1
    asked = found['pause_search_index_seconds_count{operation="ranked"}']
    assert asked == 1 and found['pause_search_index_seconds_sum{operation="ranked"}'] > 0


def test_a_text_that_is_cached_takes_nothing_of_the_endpoint(client):
    for _ in range(3):
        client.post("/v1/search", json={"text": "money"})
    assert samples(client)["pause_search_encoding_seconds_count"] == 1


def test_the_index_is_measured(client, index):
    found, status = samples(client), index.status()
    assert found["pause_search_index_companies"] == status.live == 4
    assert found["pause_search_index_tombstones"] == 0
    assert found["pause_search_index_bytes"] == status.bytes > 0
    assert found["pause_search_index_newest_record_timestamp_seconds"] == 1_700_000_000
    assert found["pause_search_index_newest_write_timestamp_seconds"] == pytest.approx(status.newest_write / 1e6)
    assert found[f'pause_search_index_info{{kind="lance",model="{MODEL}"}}'] == 1


def test_all_parts_are_up_and_an_endpoint_that_is_away_is_not(client, embedder):
    assert {part: samples(client)[f'pause_search_part_up{{part="{part}"}}'] for part in PARTS} == dict.fromkeys(
        PARTS, 1
    )
    embedder.target = None
    wait_until(lambda: samples(client)['pause_search_part_up{part="serving"}'] == 0, seconds=30)
    found = samples(client)
    assert found['pause_search_part_up{part="index"}'] == 1 and found["pause_search_index_companies"] == 4


PARTS = ("index", "serving", "model")


def test_an_index_that_is_away_leaves_the_page_as_it_is_and_its_own_figures_out(client, index, monkeypatch):
    def away(*_, **__):
        raise IndexUnusable(index.url, "gone")

    monkeypatch.setattr(index, "spec", away)
    monkeypatch.setattr(index, "status", away)
    found = samples(client)
    assert found['pause_search_part_up{part="index"}'] == 0
    assert not [name for name in found if name.startswith("pause_search_index_companies")]
    assert found["pause_search_shown_dropped_total"] == 0


def test_answers_are_there_before_the_first_one(client):
    found = samples(client)
    answers = {name: found[f'pause_search_answers_total{{answer="{name}"}}'] for name in ("similar", "not_similar")}
    assert answers == {"similar": 0, "not_similar": 0}
