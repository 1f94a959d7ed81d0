"""What searching and answering leaves behind is for its owner's eyes, and has a bound."""

import os
import threading
from dataclasses import replace

import pytest
from answering import given, said
from companies import MODEL

from search.feedback.file_store import FileFeedback
from search.feedback.recorder import WAITING_LETTERS, Recorder
from search.feedback.store import BOUND, Answer, FeedbackFull, Shown, open_feedback, to_json

STRANGER = "anonymous:0123456789ab"
COMPANIES = tuple(f"company-{number:02}" for number in range(10))


def listed(number: int) -> Shown:
    return Shown(f"{number:032}", number, STRANGER, MODEL, None, ("air-a",), (), COMPANIES)


LINE = len(to_json(listed(0))) + 1
ANSWER = len(to_json(said("air-b", "similar"))) + 1


@pytest.fixture
def path(tmp_path):
    return tmp_path / "index-feedback.jsonl"


@pytest.fixture
def open_to_all():
    before = os.umask(0)
    yield
    os.umask(before)


# privacy


def test_the_file_is_for_its_owner_alone(path, open_to_all):
    FileFeedback(path).add([listed(1)])
    assert path.stat().st_mode & 0o777 == 0o600


def test_one_that_was_open_is_closed_as_the_service_starts(path, serve):
    path.write_bytes(to_json(listed(1)) + b"\n")
    path.chmod(0o644)
    serve()
    assert path.stat().st_mode & 0o777 == 0o600


def test_one_made_smaller_is_for_its_owner_alone_too(path, open_to_all):
    store = FileFeedback(path, 20 * LINE)
    for number in range(11):
        store.add([listed(number)])
    assert path.stat().st_size < 11 * LINE and path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(path.parent) == [path.name]


# the bound of the file


def test_whoever_searches_without_end_fills_half_of_the_bound_at_most(path):
    store, largest = FileFeedback(path, 100 * LINE), 0
    for number in range(1000):
        store.add([listed(number)])
        largest = max(largest, path.stat().st_size)
    assert largest <= 50 * LINE
    kept = [record.at for record in store.scan()]
    assert kept == list(range(1000 - len(kept), 1000))  # the newest
    assert len(kept) >= 6  # a sixteenth of a hundred lines


def test_answers_and_lists_that_were_answered_outlast_the_others(path):
    store = FileFeedback(path, 100 * LINE)
    answers = [replace(said("company-03", "similar", at=number), shown=listed(number).id) for number in (0, 7)]
    store.add([listed(0)])
    store.add([answers[0]])
    for number in range(1, 300):
        store.add([listed(number)])
        if number == 7:
            store.add([answers[1]])
    kept = list(store.scan())
    assert [record for record in kept if isinstance(record, Answer)] == answers
    lists = [record.at for record in kept if isinstance(record, Shown)]
    assert lists[:2] == [0, 7] and lists[-1] == 299 and len(lists) < 50


def test_lists_leave_room_for_answers_and_strangers_for_callers_with_a_key(path):
    store = FileFeedback(path, 100 * ANSWER)
    strangers = said("air-b", "similar", STRANGER)
    size = len(to_json(strangers)) + 1
    with pytest.raises(FeedbackFull, match=f"may fill {75 * ANSWER:,}; after `python -m search.labels`"):
        for _ in range(100):
            store.add([strangers])
    number = 75 * ANSWER // size
    assert len(list(store.scan())) == number
    with pytest.raises(FeedbackFull):
        store.add([listed(1)])
    with pytest.raises(FeedbackFull):
        for _ in range(100):
            store.add([said("air-b", "similar", "ann")])
    assert path.stat().st_size <= 100 * ANSWER < path.stat().st_size + ANSWER
    assert sum(record.who == STRANGER for record in store.scan()) == number  # none was dropped for others


def test_a_file_moved_away_begins_anew(path):
    store = FileFeedback(path, 100 * ANSWER)
    with pytest.raises(FeedbackFull):
        for _ in range(200):
            store.add([said("air-b", "similar", "ann")])
    path.rename(path.with_name("kept"))
    for number in range(100):
        store.add([listed(number)])  # makes room again and again
    assert 0 < path.stat().st_size <= 50 * ANSWER


def test_many_writers_lose_no_answer_while_room_is_made(path):
    def write(number):
        store = FileFeedback(path, 400 * LINE)
        for at in range(100):
            store.add([listed(number * 1000 + at)])
            if at % 5 == 0:
                store.add([replace(said("company-01", "similar", f"person-{number}", at), shown="none of these")])

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = list(FileFeedback(path).scan())
    answers = {(record.who, record.at) for record in kept if isinstance(record, Answer)}
    assert answers == {(f"person-{number}", at) for number in range(4) for at in range(0, 100, 5)}
    assert path.stat().st_size <= 400 * LINE and len(kept) < 480  # of which 80 are answers


def test_room_is_not_looked_for_where_there_is_none_to_be_had(path, monkeypatch):
    store, looks = FileFeedback(path, 100 * ANSWER), []
    compact = FileFeedback.compact
    monkeypatch.setattr(FileFeedback, "compact", lambda *given: looks.append(1) or compact(*given))
    for _ in range(60):
        store.add([said("air-b", "similar", "ann")])
    for number in range(20):
        with pytest.raises(FeedbackFull):
            store.add([listed(number)])
    assert len(looks) == 1


# over the wire


def test_an_answer_that_has_no_room_is_refused_with_the_reason(serve, index):
    client = serve(feedback_bytes=100)
    refused = client.post("/v1/feedback", json=given(client))
    told = refused.json()["error"]
    assert (refused.status_code, told["code"]) == (503, "feedback_full")
    assert "such records may fill 75; " in told["message"]
    client.__exit__(None, None, None)  # the list has no room either
    assert "pause_search_shown_dropped_total 1.0" in client.get("/metrics").text
    assert list(open_feedback(index.url).scan()) == []


def test_a_service_that_is_told_nothing_keeps_a_gigabyte(index):
    assert BOUND == 2**30
    assert open_feedback(index.url).bound == BOUND


# the recorder


class Full:
    where = "nowhere"

    def __init__(self):
        self.tries, self.tried = 0, threading.Event()

    def add(self, records):
        self.tries += 1
        self.tried.set()
        raise FeedbackFull("nowhere", 10, 5)


def test_lists_for_a_store_that_is_full_are_dropped_and_not_tried_again(monkeypatch):
    monkeypatch.setattr("search.feedback.recorder.GATHER", 0.01)
    store, dropped = Full(), []
    recorder = Recorder(store, dropped.append)
    recorder.start()
    recorder.shown(listed(1))
    assert store.tried.wait(5)
    recorder.stop()
    assert (store.tries, dropped) == (1, [1])


def test_long_questions_that_wait_fill_no_more_memory_than_is_theirs():
    dropped = []
    recorder = Recorder(Full(), dropped.append)
    long = replace(listed(1), text="x" * (WAITING_LETTERS // 4))
    for _ in range(10):
        recorder.shown(long)
    assert sum(dropped) == 7  # with its companies' names each has more than a quarter
