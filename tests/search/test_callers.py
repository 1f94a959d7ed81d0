"""What callers without a key may sway: less than what is known, less than callers with one, and only so much each."""

import json

import pytest
from answering import rows, said, shown
from commands import answer, refusal
from companies import MODEL, company

from search.feedback.file_store import FileFeedback
from search.feedback.store import open_feedback
from search.feedback.verdicts import verdicts
from search.labels import main

STRANGER, OTHER, THIRD = (f"anonymous:{letter * 12}" for letter in "abc")
PAIR = ("air-a", "air-b")


@pytest.fixture
def export(capsys, index, tmp_path):
    """Rows, what was told on stdout, and on stderr, for records and pairs known before."""

    def run(records, *flags, known=""):
        open_feedback(index.url).add(records)
        out, earlier = tmp_path / "pairs.tsv", tmp_path / "known.tsv"
        earlier.write_text(f"left\tright\tlabel\n{known}")
        adding = ("--add", earlier) if known else ()
        code, told, swayed = answer(capsys, main, "--index", index.url, "--out", out, *adding, *flags)
        assert code == 0, swayed
        return rows(out), told, swayed

    return run


# over what is known


@pytest.mark.parametrize("votes", [("not_similar",), ("not_similar",) * 3, ("similar", "not_similar")])
def test_callers_without_a_key_never_overrule_what_is_known_nor_take_it_out(export, votes):
    callers = (STRANGER, OTHER, THIRD)
    records = [said("air-b", vote, who) for vote, who in zip(votes, callers, strict=False)]
    found, told, _ = export(records, known="air-b\tair-a\tsimilar\n")
    assert found == [["air-a", "air-b", "similar"]]
    assert "1 pairs keep the label of --add FILE" in told


def test_callers_with_a_key_do(export):
    records = [said("air-b", "not_similar", "ann"), *(said("air-b", "similar", who) for who in (STRANGER, OTHER))]
    assert export(records, known="air-b\tair-a\tsimilar\n")[0] == [["air-a", "air-b", "not_similar"]]


def test_a_pair_known_without_a_label_is_anybodys_to_label(export):
    assert export([said("air-b", "similar", STRANGER)], known="air-a\tair-b\t\n")[0] == [["air-a", "air-b", "similar"]]


# over callers with a key


def test_one_caller_with_a_key_outweighs_any_number_without():
    crowd = [said("air-b", "similar", f"anonymous:{number:012x}") for number in range(100)]
    assert verdicts([*crowd, said("air-b", "not_similar", "ann")]).not_similar == {PAIR}


def test_callers_without_a_key_break_no_tie_of_those_with_one():
    found = verdicts(
        [said("air-b", "similar", "a"), said("air-b", "not_similar", "b"), said("air-b", "similar", OTHER)]
    )
    assert (found.tied, found.similar) == ({PAIR}, set())


def test_what_a_caller_with_a_key_took_back_leaves_the_pair_to_the_others():
    taken_back = [said("air-b", "not_similar", "ann", at=1), said("air-b", "undo", "ann", at=2)]
    assert verdicts([*taken_back, said("air-b", "similar", STRANGER)]).similar == {PAIR}


# one caller's share


def test_a_caller_that_answers_a_thousand_times_has_as_many_votes_as_are_allowed():
    flood = [said(f"c{number:04}", "similar", STRANGER, at=number) for number in range(1000)]
    found = verdicts(flood, anonymous_pairs=200)
    assert found.similar == {("air-a", f"c{number:04}") for number in range(200)}  # the first ones
    assert found.capped == {STRANGER: 800}


def test_a_thousand_answers_on_one_pair_are_one_vote_and_cost_one():
    loud = [said("air-b", "similar", STRANGER, at=number) for number in range(1000)]
    two = [said("air-b", "not_similar", who, at=5) for who in (OTHER, THIRD)]
    found = verdicts([*loud, *two, said("ship", "similar", STRANGER, at=2000)], anonymous_pairs=2)
    assert (found.not_similar, found.similar, found.capped) == ({PAIR}, {("air-a", "ship")}, {})


def test_a_change_of_mind_keeps_its_place_and_what_was_taken_back_costs_none():
    records = [said("a", "similar", STRANGER, at=1), said("b", "similar", STRANGER, at=2)]
    records += [said("c", "similar", STRANGER, at=3), said("a", "not_similar", STRANGER, at=9)]
    records += [said("b", "undo", STRANGER, at=10)]
    found = verdicts(records, anonymous_pairs=1)
    assert (found.not_similar, found.similar, found.capped) == ({("a", "air-a")}, set(), {STRANGER: 1})


def test_callers_with_a_key_have_any_number_of_votes():
    found = verdicts([said(f"c{number}", "similar", "ann") for number in range(300)], anonymous_pairs=200)
    assert len(found.similar) == 300


def test_the_export_is_bounded_without_being_told_and_the_flag_changes_it(export, index):
    index.write([company(f"c{number:03}") for number in range(250)])
    flood = [said(f"c{number:03}", "similar", STRANGER, at=number) for number in range(250)]
    found, told, swayed = export(flood)
    assert len(found) == 200
    assert "50 votes do not count" in told
    assert [line.split() for line in swayed.splitlines()[1:]] == [[STRANGER, "250", "200", "0", "50"]]
    assert len(export([], "--anonymous_pairs", 0)[0]) == 250
    assert len(export([], "--anonymous_pairs", 3)[0]) == 3


def test_a_bound_that_is_no_number_is_told(capsys, index, tmp_path):
    flags = ("--index", index.url, "--out", tmp_path / "pairs.tsv", "--anonymous_pairs", "few")
    assert "a number of pairs" in refusal(capsys, main, *flags)


# who swayed what


def test_the_report_says_of_each_caller_what_became_of_the_answers(export, tmp_path):
    records = [
        said("air-b", "similar", STRANGER, at=1),  # alone
        said("ship", "similar", STRANGER, at=2),  # overruled by ann
        said("ship", "not_similar", "ann", at=3),  # alone, of those whose vote decides
        said("bank", "not_similar", OTHER, at=4),  # overruled by what is known
        said("bank", "similar", "bob", at=5, anchor="ship"),  # with ann
        said("bank", "similar", "ann", at=6, anchor="ship"),
        said("bank", "similar", STRANGER, at=7, anchor="air-b"),  # beyond the two votes
    ]
    _, _, swayed = export(
        records, "--anonymous_pairs", 2, "--callers", tmp_path / "callers.json", known="air-a\tbank\tsimilar\n"
    )
    expected = [("ann", True, 2, 1, 0, 0), (STRANGER, False, 3, 1, 1, 1), ("bob", True, 1, 0, 0, 0)]
    expected += [(OTHER, False, 1, 0, 1, 0)]
    names = ("caller", "has_key", "answers", "alone", "overruled", "capped")
    written = json.loads((tmp_path / "callers.json").read_text())
    assert sorted(tuple(one[name] for name in names) for one in written) == sorted(expected)
    assert swayed.splitlines()[0].split() == ["caller", "answers", "decided", "alone", "overruled", "capped"]
    assert [STRANGER, "3", "1", "1", "1"] in [line.split() for line in swayed.splitlines()]


def test_many_callers_are_told_in_few_lines(export):
    _, _, swayed = export([said("air-b", "similar", f"anonymous:{number:012x}") for number in range(50)])
    assert len(swayed.splitlines()) == 22
    assert "and 30 more callers" in swayed


# what was kept before ids were signed


def test_records_with_ids_that_nobody_signed_are_read_as_before(index, export):
    who = {"at": 1, "who": "anonymous:0123456789ab", "model": MODEL, "text": None}
    listed = {
        "kind": "shown",
        "id": "5f0c2f6ad1b94a0e",
        "like": ["air-a"],
        "unlike": [],
        "companies": ["air-b", "ship"],
    }
    answered = {"kind": "answer", "shown": listed["id"], "anchor": "air-a", "candidate": "air-b", "answer": "similar"}
    store = open_feedback(index.url)
    assert isinstance(store, FileFeedback)
    store.path.write_text("".join(json.dumps({**who, "rank": 1, **one}) + "\n" for one in (listed, answered)))
    assert export([shown("bank")])[0] == [
        ["air-a", "air-b", "similar"],
        ["air-a", "bank", ""],
        ["air-a", "ship", ""],
    ]
