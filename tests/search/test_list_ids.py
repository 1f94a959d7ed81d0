"""An answer is taken for a company of a list that this installation has shown, and for nothing else."""

import pytest
from answering import given
from companies import MODEL
from market import ids
from starlette.testclient import TestClient

from search.access.secret import Secret
from search.app import create_app
from search.feedback.list_ids import MAX_LENGTH, ListIds, ListRefused
from search.feedback.store import Answer, Shown, open_feedback
from search.settings import Settings

ID = "0123456789abcdef0123456789abcdef"
SHOWN = Shown(ID, 1_000_000_000, "ann", MODEL, None, ("air-a",), (), ("air-b", "ship"))  # after 1,000 s
DAYS = 24 * 3600


def names(secret=b"one", now=1_000.0):
    return ListIds(Secret(secret), lambda: now)


def refused(client, body) -> str:
    answer = client.post("/v1/feedback", json=body)
    assert answer.status_code == 422, answer.text
    told = answer.json()["error"]
    assert told["message"] and "ask again" in told["fix"]
    return told["code"]


# over the wire


@pytest.mark.parametrize("shown", ["list", "5f0c2f6ad1b94a0e", f"{ID}.", f"{ID}.AAAA", "é.é", "." * 1000])
def test_a_list_that_was_never_shown_takes_no_answer(client, index, shown):
    assert refused(client, given(client, shown=shown)) == "not_shown"
    assert not any(isinstance(record, Answer) for record in open_feedback(index.url).scan())


def test_every_letter_of_a_name_is_signed(client):
    body = given(client)
    for place in range(0, len(body["shown"]), 7):
        letter = "A" if body["shown"][place] != "A" else "B"
        changed = body["shown"][:place] + letter + body["shown"][place + 1 :]
        assert refused(client, {**body, "shown": changed}) == "not_shown"
    assert client.post("/v1/feedback", json=body).status_code == 204


def test_a_company_that_was_not_on_the_list_takes_no_answer(client):
    first = client.get("/v1/companies/air-a/similar?k=1")
    assert ids(first) == ["air-b"]
    body = given(client, shown=first.json()["shown"])
    assert refused(client, {**body, "candidate": "ship"}) == "not_on_list"
    assert refused(client, {**body, "candidate": "air-a"}) == "not_on_list"
    assert client.post("/v1/feedback", json=body).status_code == 204


def test_an_answer_is_about_what_was_asked(client):
    body = given(client)
    for change in ({"anchor": "bank"}, {"anchor": None}, {"anchor": None, "text": "air-a"}, {"text": "cheap"}):
        assert refused(client, {**body, **change}) == "not_asked", change


def test_an_answer_about_a_text_is_taken_for_that_text_alone(client):
    found = client.post("/v1/search", json={"text": " cheap  flights "}).json()
    body = {"shown": found["shown"], "candidate": "air-b", "answer": "similar", "rank": 1}
    assert client.post("/v1/feedback", json={**body, "text": "cheap flights"}).status_code == 204
    assert refused(client, {**body, "text": "cheap loans"}) == "not_asked"
    assert refused(client, {**body, "anchor": "air-a"}) == "not_asked"


def test_a_question_of_several_parts_takes_answers_about_no_pair(client):
    found = client.post("/v1/search", json={"like": ["air-a", "air-b"], "text": "sea"}).json()
    body = {"shown": found["shown"], "candidate": "ship", "answer": "similar", "rank": 1}
    assert client.post("/v1/feedback", json=body).status_code == 204
    assert refused(client, {**body, "anchor": "air-a"}) == "not_asked"
    assert refused(client, {**body, "text": "sea"}) == "not_asked"


def test_steering_away_leaves_the_question_what_it_was(client):
    found = client.post("/v1/search", json={"like": ["air-a"], "unlike": ["bank"]}).json()  # as the page asks
    body = {"shown": found["shown"], "anchor": "air-a", "candidate": "ship", "answer": "similar", "rank": 1}
    assert client.post("/v1/feedback", json=body).status_code == 204


def test_a_list_of_another_installation_takes_no_answer_and_one_of_a_replica_does(index, embedder, tmp_path):
    for name in ("ours", "theirs"):
        (tmp_path / name).write_bytes(name.encode() * 10)

    def service(name):
        return TestClient(
            create_app(index, embedder, Settings(rate=0, secret_file=str(tmp_path / name))), "http://localhost"
        )

    body = given(service("ours"))
    assert refused(service("theirs"), body) == "not_shown"
    assert service("ours").post("/v1/feedback", json=body).status_code == 204  # before any list is written


def test_the_longest_list_has_a_name_that_comes_back(client, index):
    shown = Shown(ID, 1_000_000_000, "ann", MODEL, "x" * 10_000, (), (), tuple(f"{at:0512}" for at in range(100)))
    name = names().issue(shown)
    assert len(name) == 604 < MAX_LENGTH  # 33 and, in base64, 4 + 8 + 400 + 16 bytes
    assert names().check(name, None, "x" * 10_000, f"{99:0512}") == ID


# with a clock


def test_a_list_takes_answers_for_a_week():
    name = names().issue(SHOWN)
    assert names(now=1_000 + 7 * DAYS).check(name, "air-a", None, "ship") == ID
    with pytest.raises(ListRefused, match="more than 7 days ago"):
        names(now=1_001 + 7 * DAYS).check(name, "air-a", None, "ship")


def test_a_clock_that_is_behind_refuses_nothing():
    assert names(now=900).check(names().issue(SHOWN), "air-a", None, "air-b") == ID


def test_a_list_of_nobody_is_answered_by_nobody():
    name = names().issue(Shown(ID, 1_000_000_000, "ann", MODEL, None, ("air-a",), (), ()))
    with pytest.raises(ListRefused, match="not on the list"):
        names().check(name, "air-a", None, "")
