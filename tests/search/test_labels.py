"""From answers to training pairs: yes, no, shown and unanswered; the newest of a person, the majority of people."""

import pytest
from answering import rows, said, shown
from commands import answer, refusal
from companies import company
from market import deleted

from model.data.companies import read_companies
from model.data.pairs import read_pairs
from search.feedback.store import open_feedback
from search.feedback.verdicts import verdicts
from search.labels import main

# verdicts


def test_yes_no_and_unanswered():
    found = verdicts([shown("air-b", "bank", "ship"), said("air-b", "similar"), said("bank", "not_similar")])
    assert found.similar == {("air-a", "air-b")}
    assert found.not_similar == {("air-a", "bank")}
    assert found.unlabelled == {("air-a", "ship")}
    assert found.answers == {"ann": 2}


def test_the_newest_answer_of_a_person_counts_whatever_the_order():
    newer, older = said("air-b", "not_similar", at=2), said("air-b", "similar", at=1)
    for records in ([older, newer], [newer, older]):
        assert verdicts(records).not_similar == {("air-a", "air-b")}


def test_of_two_at_one_moment_the_later_record_counts():
    assert verdicts([said("air-b", "similar"), said("air-b", "not_similar")]).not_similar == {("air-a", "air-b")}


def test_what_was_taken_back_is_unanswered_again():
    found = verdicts([shown("air-b"), said("air-b", "similar", at=1), said("air-b", "undo", at=2)])
    assert (found.similar, found.unlabelled, found.undone) == (set(), {("air-a", "air-b")}, 1)


def test_the_majority_of_people_decides_and_is_reported():
    votes = [said("air-b", vote, who) for who, vote in (("a", "similar"), ("b", "similar"), ("c", "not_similar"))]
    found = verdicts(votes)
    assert (found.similar, found.outvoted) == ({("air-a", "air-b")}, {("air-a", "air-b")})


def test_many_answers_of_one_person_are_one_vote():
    loud = [said("air-b", "similar", "loud", at) for at in range(10)]
    found = verdicts([*loud, said("air-b", "not_similar", "b"), said("air-b", "not_similar", "c")])
    assert found.not_similar == {("air-a", "air-b")}


def test_a_tie_is_neither_and_not_unlabelled_either():
    found = verdicts([shown("air-b"), said("air-b", "similar", "a"), said("air-b", "not_similar", "b")])
    assert found.tied == {("air-a", "air-b")}
    assert not found.similar | found.not_similar | found.unlabelled


def test_likeness_has_no_direction():
    there, back = said("air-b", "similar", "a"), said("air-a", "not_similar", "a", at=2, anchor="air-b")
    found = verdicts([there, back])
    assert (found.similar, found.not_similar) == (set(), {("air-a", "air-b")})


def test_what_was_typed_is_a_company_that_has_a_description_alone():
    records = [
        shown("air-b", "ship", like=(), text="cheap  flights"),
        said("air-b", "similar", anchor=None, text="cheap flights"),
    ]
    found = verdicts(records)
    ((name, text),) = found.texts.items()
    assert text == "cheap flights"
    assert found.similar == {("air-b", name)}
    assert found.unlabelled == {(name, "ship")}


def test_a_question_of_several_parts_says_nothing_of_a_pair():
    several = shown("ship", like=("air-a", "air-b"))
    away, both = shown("ship", unlike=("bank",)), shown("ship", text="sea")
    found = verdicts([several, away, both, said("ship", "similar", anchor=None)])
    assert (found.unlabelled, found.similar, found.without_anchor) == (set(), set(), 1)


# the command


@pytest.fixture
def answered(index):
    store = open_feedback(index.url)
    store.add([shown("air-b", "bank", "ship"), said("air-b", "similar"), said("bank", "not_similar")])
    store.add([said("ship", "similar", "bob"), said("ship", "not_similar", "eve")])
    store.add([said("bank", "similar", anchor=None, text="lends money")])
    return index.url


def test_pairs_are_written_and_conflicts_reported(capsys, answered, tmp_path):
    out = tmp_path / "new" / "pairs.tsv"
    code, told, _ = answer(capsys, main, "--index", answered, "--out", out)
    assert code == 0
    assert rows(out) == [["air-a", "air-b", "similar"], ["air-a", "bank", "not_similar"]]
    assert "5 answers, people: 3; 1 pairs similar, 1 not_similar, 0 unlabelled" in told
    assert "tied: air-a / ship" in told
    assert "1 pairs with what somebody typed were left out; --companies FILE keeps them" in told


def test_training_reads_what_is_written(capsys, answered, tmp_path):
    out, companies = tmp_path / "pairs.tsv", tmp_path / "companies.jsonl"
    assert answer(capsys, main, "--index", answered, "--out", out, "--companies", companies)[0] == 0
    pairs = read_pairs(out, negative="not_similar")
    assert (pairs.names, len(pairs), pairs.has_negatives) == (("similar",), 3, True)
    known = read_companies(companies)
    assert set(pairs.items) == known.keys()
    assert known["air-a"]["industry"] == "airlines"
    (query,) = (one for id, one in known.items() if id.startswith("query:"))
    assert query["description"] == "lends money"


def test_earlier_pairs_are_kept_unless_people_say_otherwise(capsys, answered, tmp_path):
    earlier, out = tmp_path / "earlier.tsv", tmp_path / "pairs.tsv"
    earlier.write_text("left\tright\tlabel\nbank\tair-a\tsimilar\nship\tbank\tsimilar\nair-b\tbank\t\n")
    assert answer(capsys, main, "--index", answered, "--out", out, "--add", earlier)[0] == 0
    assert rows(out) == [
        ["air-a", "air-b", "similar"],
        ["air-a", "bank", "not_similar"],
        ["bank", "ship", "similar"],
        ["air-b", "bank", ""],
    ]


def test_companies_that_are_gone_are_in_no_pair(capsys, answered, index, tmp_path):
    index.write([deleted("bank")])
    code, told, _ = answer(capsys, main, "--index", answered, "--out", tmp_path / "pairs.tsv")
    assert code == 0
    assert rows(tmp_path / "pairs.tsv") == [["air-a", "air-b", "similar"]]
    assert "1 pairs were left out: a company of theirs was deleted" in told


def test_ids_that_no_line_can_hold_are_left_out(capsys, index, tmp_path):
    index.write([company("tab\tbed")])
    open_feedback(index.url).add([said("tab\tbed", "similar"), said("ship", "similar")])
    code, told, _ = answer(capsys, main, "--index", index.url, "--out", tmp_path / "pairs.tsv")
    assert (code, rows(tmp_path / "pairs.tsv")) == (0, [["air-a", "ship", "similar"]])
    assert "an id with a tab" in told


def test_nothing_answered_is_one_line_and_no_file(capsys, index, tmp_path):
    open_feedback(index.url).add([shown("air-b")])
    told = refusal(capsys, main, "--index", index.url, "--out", tmp_path / "pairs.tsv")
    assert "nobody has answered yet" in told
    assert not (tmp_path / "pairs.tsv").exists()


def test_a_missing_index_is_one_line(capsys, tmp_path):
    assert "no index at" in refusal(capsys, main, "--index", tmp_path / "none", "--out", tmp_path / "pairs.tsv")


def test_what_the_page_sends_becomes_a_pair(capsys, client, index, tmp_path):
    found = client.get("/v1/companies/air-a/similar").json()
    for hit, vote in zip(found["hits"], ("similar", "not_similar", "undo"), strict=True):
        body = {"shown": found["shown"], "anchor": "air-a", "text": None, "rank": hit["rank"]}
        body |= {"candidate": hit["company"]["id"], "answer": vote}
        assert client.post("/v1/feedback", json=body).status_code == 204
    client.__exit__(None, None, None)
    assert answer(capsys, main, "--index", index.url, "--out", tmp_path / "pairs.tsv")[0] == 0
    assert rows(tmp_path / "pairs.tsv") == [
        ["air-a", "air-b", "similar"],
        ["air-a", "ship", "not_similar"],
        ["air-a", "bank", ""],
    ]
