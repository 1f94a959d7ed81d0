"""Answers held out of the training: whole lists, always the same ones, and in no other file."""

from answering import rows, said, shown
from commands import answer
from companies import company

from model.data.tsv import read_columns
from search.feedback.held_out import Answers, hold_out, without
from search.feedback.store import open_feedback
from search.feedback.verdicts import verdicts
from search.labels import main


def asked(*anchors):
    return [said(f"{anchor}-like", "similar", anchor=anchor) for anchor in anchors] + [
        said(f"{anchor}-unlike", "not_similar", anchor=anchor) for anchor in anchors
    ]


def split(records, earlier=None):
    found = verdicts(records)
    pairs = (earlier or {}) | dict.fromkeys(found.similar, "similar") | dict.fromkeys(found.not_similar, "not_similar")
    held = hold_out(found, pairs)
    return held, without(pairs, held)


def test_all_answers_on_an_anchor_are_held_out_or_none():
    held, training = split(asked(*(f"a{number}" for number in range(50))))
    anchors = {one.anchor for one in held}
    assert 4 <= len(anchors) <= 16  # a fifth of 50, drawn by name
    assert len(held) == 2 * len(anchors)
    assert not anchors & {id for pair in training for id in pair}


def test_who_is_held_out_stays_so_when_more_is_answered():
    few, _ = split(asked(*(f"a{number}" for number in range(50))))
    many, _ = split(asked(*(f"a{number}" for number in range(100))))
    assert set(few) <= set(many)


def test_of_two_lists_one_is_held_out_and_of_one_none():
    held, training = split(asked("a", "b"))
    assert (len(held), len(training)) == (2, 2)
    assert split(asked("a"))[0] == []


def test_a_held_out_pair_is_not_trained_on_though_it_was_known_before():
    earlier = {("a0", "a0-like"): "similar", ("a1", "a1-like"): "similar", ("x", "y"): "similar"}
    held, training = split(asked("a0", "a1"), earlier)
    (anchor,) = {one.anchor for one in held}
    assert (anchor, f"{anchor}-like") not in training
    assert ("x", "y") in training


def test_answers_are_new_when_what_they_say_is():
    first = Answers.of(verdicts(asked("a")))
    again = Answers.of(verdicts([*asked("a"), said("a-like", "similar", anchor="a", at=9)]))
    other = Answers.of(verdicts([*asked("a"), said("a-like", "not_similar", anchor="a", at=9)]))
    assert (first.answers, again.answers, again.newest) == (2, 3, 9)
    assert first.sha256 == again.sha256 != other.sha256


def test_the_command_writes_them_apart_with_the_anchor_on_the_left(capsys, index, tmp_path):
    index.write([company(id) for id in ("a", "b", "c", "d")])
    records = [said("c", "similar", anchor="b"), said("c", "not_similar", anchor="d"), shown("a", like=("b",))]
    open_feedback(index.url).add(records)
    files = {name: tmp_path / name for name in ("out", "held_out", "answers", "companies")}
    flags = [word for name, path in files.items() for word in (f"--{name}", path)]
    code, told, _ = answer(capsys, main, "--index", index.url, *flags)
    assert code == 0 and "1 answered pairs are held out" in told
    ((_, (anchor, candidate, _)),) = read_columns(files["held_out"], ["left", "right", "label"])
    assert anchor in ("b", "d") and candidate == "c"
    assert {anchor, candidate} not in [{left, right} for left, right, _ in rows(files["out"])]
    assert '"pairs": 2' in files["answers"].read_text()
