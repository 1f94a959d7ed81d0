"""Answers are kept before they are acknowledged, lists that were shown beside them, and nothing is ever changed."""

import json
import os
import stat
import threading
from dataclasses import replace

import pytest
from answering import given
from companies import MODEL
from market import ids

from search.feedback.file_store import FileFeedback
from search.feedback.recorder import Recorder
from search.feedback.store import Answer, FeedbackDown, Shown, from_json, open_feedback, to_json

SHOWN = Shown("list", 5, "ann", MODEL, None, ("air-a",), (), ("air-b", "ship"), 10)
ANSWER = Answer("list", 7, "ann", MODEL, "air-a", None, "air-b", "similar", 11)


def answers(index) -> list[Answer]:
    return [record for record in open_feedback(index.url).scan() if isinstance(record, Answer)]


def list_of(found: dict) -> str:
    """The id of the list's record, which the name of a list begins with."""
    return found["shown"].partition(".")[0]


@pytest.fixture
def store(tmp_path):
    return FileFeedback(tmp_path / "index-feedback.jsonl")


# the file


def test_records_come_back_as_they_were(store):
    store.add([SHOWN, ANSWER])
    store.add([replace(ANSWER, answer="undo", text='tab\t "quotes" 🙂\n', anchor=None)])
    assert list(store.scan()) == [
        SHOWN,
        ANSWER,
        replace(ANSWER, answer="undo", text='tab\t "quotes" 🙂\n', anchor=None),
    ]
    assert len(store.path.read_bytes().splitlines()) == 3


def test_nothing_is_there_before_the_first_record(store):
    assert list(store.scan()) == []
    assert not store.path.exists()


def test_the_first_answer_and_the_name_of_its_file_outlive_the_machine(store, monkeypatch):
    synced, real = [], os.fsync

    def fsync(file):
        synced.append("folder" if stat.S_ISDIR(os.fstat(file).st_mode) else "file")
        real(file)

    monkeypatch.setattr(os, "fsync", fsync)
    store.add([ANSWER])
    assert synced == ["file", "folder"]
    store.add([ANSWER])
    assert synced == ["file", "folder", "file"]


def test_what_a_killed_process_left_half_written_spoils_nothing(store):
    store.add([SHOWN])
    with store.path.open("ab") as file:
        file.write(to_json(ANSWER)[:20])
    store.add([ANSWER])
    assert list(store.scan()) == [SHOWN, ANSWER]


def test_many_writers_lose_nothing(store):
    def write(number):
        for one in range(50):
            FileFeedback(store.path).add([replace(ANSWER, who=f"person-{number}", at=one)])

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {(record.who, record.at) for record in store.scan()} == {
        (f"person-{number}", one) for number in range(4) for one in range(50)
    }


def test_fields_of_a_later_release_are_left_out():
    assert from_json({**json.loads(to_json(ANSWER)), "mood": "good"}) == ANSWER


def test_the_store_is_beside_the_index(tmp_path):
    for url in (str(tmp_path / "here" / "index"), f"lance://{tmp_path}/here/index/"):
        assert open_feedback(url).where == str(tmp_path / "here" / "index-feedback.jsonl")


def test_a_store_that_cannot_be_written_is_told(tmp_path):
    with pytest.raises(FeedbackDown, match="cannot be written: No such file"):
        FileFeedback(tmp_path / "missing" / "feedback.jsonl").add([ANSWER])


# over the wire


def test_an_answer_is_kept_with_who_when_model_and_rank(client, index):
    answered = given(client, rank=3)
    assert client.post("/v1/feedback", json=answered).status_code == 204
    (kept,) = answers(index)
    assert (kept.anchor, kept.candidate, kept.answer, kept.rank) == ("air-a", "air-b", "similar", 3)
    assert (kept.model, kept.shown) == (MODEL, list_of(answered))
    assert kept.at > 1_700_000_000_000_000  # microseconds
    assert kept.who.startswith("anonymous:")
    assert 'pause_search_answers_total{answer="similar"} 1.0' in client.get("/metrics").text


def test_an_address_is_not_kept(client, index):
    client.post("/v1/feedback", json=given(client))
    assert "testclient" not in open_feedback(index.url).path.read_text()


def test_lists_are_kept_as_they_were_shown(serve, index):
    client = serve()
    found = client.get("/v1/companies/air-a/similar?k=2")
    second = client.post("/v1/search", json={"text": "money", "like": ["air-a"], "unlike": ["ship"], "offset": 1})
    client.__exit__(None, None, None)  # what waits is written
    kept = {record.id: record for record in open_feedback(index.url).scan()}
    shown = kept[list_of(found.json())]
    assert (shown.like, shown.text, shown.companies, shown.offset) == (("air-a",), None, tuple(ids(found)), 0)
    shown = kept[list_of(second.json())]
    assert (shown.like, shown.unlike, shown.text, shown.offset) == (("air-a",), ("ship",), "money", 1)
    assert shown.model == MODEL


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"candidate": "nobody"}, 422),
        ({"anchor": "nobody"}, 422),
        ({"answer": "maybe"}, 422),
        ({"rank": 0}, 422),
        ({"shown": ""}, 422),
        ({"who": "me"}, 422),
    ],
)
def test_an_answer_that_makes_no_sense_is_not_kept(client, index, change, status):
    assert client.post("/v1/feedback", json=given(client, **change)).status_code == status
    assert answers(index) == []


def test_an_answer_that_cannot_be_kept_is_not_acknowledged(client, index):
    open_feedback(index.url).path.mkdir()
    answer = client.post("/v1/feedback", json=given(client))
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "feedback_down")


# the recorder


class Sick:
    """A store that fails until it is told otherwise."""

    where = "nowhere"

    def __init__(self):
        self.kept, self.well = [], False
        self.tried, self.done = threading.Event(), threading.Event()

    def add(self, records):
        self.tried.set()
        if not self.well:
            raise FeedbackDown("nowhere cannot be written")
        self.kept += records
        self.done.set()


def test_lists_wait_for_a_store_that_is_down(monkeypatch):
    monkeypatch.setattr("search.feedback.recorder.GATHER", 0.01)
    monkeypatch.setattr("search.feedback.recorder.PAUSE", 0.01)
    store, dropped = Sick(), []
    recorder = Recorder(store, dropped.append)
    recorder.start()
    recorder.shown(SHOWN)
    assert store.tried.wait(5)
    store.well = True
    assert store.done.wait(5)
    recorder.stop()
    assert (store.kept, dropped) == ([SHOWN], [])


def test_lists_that_nobody_takes_are_dropped_and_counted():
    dropped = []
    recorder = Recorder(Sick(), dropped.append, waiting=2)
    for _ in range(5):
        recorder.shown(SHOWN)
    assert sum(dropped) == 3


def test_stopping_does_not_wait_for_a_store_that_stays_down(monkeypatch):
    monkeypatch.setattr("search.feedback.recorder.GATHER", 0.01)
    store, dropped = Sick(), []
    recorder = Recorder(store, dropped.append)
    recorder.start()
    recorder.shown(SHOWN)
    assert store.tried.wait(5)
    recorder.stop()
    assert sum(dropped) == 1
