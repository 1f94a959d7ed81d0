"""Feedback in Elasticsearch has a bound, too: lists make room, answers stay."""

from dataclasses import replace

import pytest
from answering import said
from companies import MODEL
from elasticsearch import Elasticsearch

from search.feedback.store import Answer, FeedbackFull, Shown, open_feedback, to_json

STRANGER = "anonymous:0123456789ab"
COMPANIES = tuple(f"company-{number:02}" for number in range(10))


def listed(number: int) -> Shown:
    return Shown(f"{number:032}", number, STRANGER, MODEL, None, ("air-a",), (), COMPANIES)


LINE = len(to_json(replace(listed(0), at=1_000))) + len('"bytes":123,')


@pytest.fixture
def opened(elasticsearch_server, request, monkeypatch):
    """A store of so many bytes that looks each time."""
    monkeypatch.setattr("search.feedback.elastic_store.LOOK", 0.0)
    monkeypatch.setattr("search.feedback.elastic_capacity.PAGE", 2)
    url = f"{elasticsearch_server.address}/{request.node.name}"

    def store(bound):
        return open_feedback(url, bound)

    return store


def test_lists_that_nobody_answered_make_room_and_answers_stay(opened):
    store = opened(100 * LINE)
    answer = replace(said("company-03", "similar", at=7), shown=listed(7).id)
    store.add([listed(number) for number in range(1000, 1020)])
    store.add([replace(listed(7), at=1000), answer])  # as old as the oldest
    for start in range(1020, 1200, 20):
        store.add([listed(number) for number in range(start, start + 20)])
    kept = list(store.scan())
    assert [record for record in kept if isinstance(record, Answer)] == [answer]
    lists = sorted(int(record.id) for record in kept if isinstance(record, Shown))
    assert lists[0] == 7 and lists[-1] == 1199 and len(lists) <= 50
    assert lists[1:] == list(range(1200 - len(lists[1:]), 1200))


def test_lists_leave_room_for_answers_and_strangers_for_callers_with_a_key(opened):
    size = len(to_json(said("air-b", "similar", STRANGER))) + len('"bytes":123,')
    store = opened(100 * size)
    store.add([said("air-b", "similar", STRANGER)] * 75)
    with pytest.raises(FeedbackFull, match=r"-feedback holds .* bytes, and such records may fill"):
        store.add([said("air-b", "similar", STRANGER)] * 10)
    with pytest.raises(FeedbackFull):
        store.add([listed(1)])
    store.add([said("air-b", "similar", "ann")])
    with pytest.raises(FeedbackFull):
        store.add([said("air-b", "similar", "ann")] * 100)
    assert len(list(store.scan())) == 76


def test_what_an_earlier_release_kept_is_read_and_counted(opened, elasticsearch_server, request):
    with Elasticsearch(elasticsearch_server.address) as client:
        name = f"{request.node.name}-feedback"
        old = {"kind": {"type": "keyword"}, "shown": {"type": "keyword"}, "at": {"type": "long"}}
        client.indices.create(index=name, mappings={"dynamic": False, "properties": old})
        for number in range(3):
            client.index(index=name, document={"kind": "shown", **vars(listed(number))}, refresh=True)
    store = opened(4000)  # three lists of about 500 bytes leave room for one
    store.add([listed(10)])
    store.add([listed(11)])  # the oldest made room
    assert {record.at for record in store.scan()} >= {10, 11}
    assert len(list(store.scan())) < 5
