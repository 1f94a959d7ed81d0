"""What the search benchmark does around the service: who is asked what, and how the figures are held to their bars."""

import numpy as np
import pytest
from companies import company

from benchmarks import search
from benchmarks.measures import users
from benchmarks.quality import loop


def test_both_are_asked_the_same_in_turns(monkeypatch):
    monkeypatch.setattr(search, "BLOCK", 2)
    asked = []
    ours, theirs = search.compared(
        ["z", "a", "b", "c"],
        lambda one: asked.append(("ours", one)),
        lambda one: asked.append(("theirs", one)),
        warm_up=1,
    )
    assert len(ours) == len(theirs) == 3  # the first warms both up
    turns = [("ours", "a"), ("ours", "b"), ("theirs", "a"), ("theirs", "b"), ("ours", "c"), ("theirs", "c")]
    assert asked == [("ours", "z"), ("theirs", "z"), *turns]


@pytest.mark.parametrize(("ours", "met"), [(29.0, "yes"), (29.1, "no")])
def test_an_answer_may_take_a_fifth_more_than_the_bare_one_and_five_milliseconds(ours, met):
    figures = search.held(np.full(10, ours), np.full(10, 20.0))
    assert (figures["p50 ms"], figures["bare p99 ms"], figures["met"]) == (ours, 20.0, met)
    assert "met" not in search.held(np.full(10, ours), np.full(10, 20.0), bar=False)


def test_prefixes_are_beginnings_of_names():
    documents = [company("a", name=""), company("b", name="Brauerei Wolf"), company("c", name="Ox")]
    typed = search.prefixes(documents, np.random.default_rng(0))
    assert len(typed) == 2
    assert "Brauerei Wolf".startswith(typed[0]) and "Ox".startswith(typed[1]) and all(typed)


def test_a_crowd_counts_every_question_and_every_error(monkeypatch):
    monkeypatch.setattr(users, "PAUSE", (0.01, 0.02))
    monkeypatch.setattr(users, "Caller", Pretended)

    def ask(caller, chance):
        if chance.random() < 0.5:
            raise ValueError("no answer")

    found = users.crowd(("", 0), people=5, minutes=0.01, ask=ask)
    wrong = found.errors["ValueError: no answer"]
    assert 0 < wrong < len(found.seconds)
    assert sum(found.errors.values()) == wrong


class Pretended:
    """A service that shows b, c, d and e to everybody."""

    def __init__(self, address):
        self.said = SAID

    def similar(self, id, k):
        hits = [{"company": {"id": one}, "rank": rank} for rank, one in enumerate("bcde", start=1)]
        return {"shown": f"list of {id}", "hits": hits}

    def answer(self, *words):
        self.said.append(words)

    def close(self):
        pass


SAID = []


def test_people_say_yes_to_peers_and_no_to_the_first_others(monkeypatch):
    monkeypatch.setattr(loop, "Caller", Pretended)
    monkeypatch.setattr(loop, "REFUSED", 1)
    SAID.clear()
    answered = loop.answer(("", 0), ["a"], {"a": {"c"}, "e": {"a"}})
    assert SAID == [
        ("list of a", "a", "b", "not_similar", 1),
        ("list of a", "a", "c", "similar", 2),
        ("list of a", "a", "e", "similar", 4),  # listed the other way round
    ]
    assert answered == {"a", "b", "c", "e"}  # d was shown, and nobody said a word


def test_recall_is_the_mean_share_of_peers_among_the_nearest():
    class Index:
        def nearest_to(self, id, k, exact):
            from index.base import Hit

            assert (k, exact) == (loop.NEAREST, True)
            return [Hit(company(one), 1.0) for one in {"a": "bc", "b": "d"}[id]]

    assert loop.recall(Index(), ["a", "b"], {"a": {"b", "x"}, "b": {"c"}}) == pytest.approx(0.25)
