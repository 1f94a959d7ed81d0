"""The question sets themselves, and how they are scored."""

import json
from pathlib import Path

import pytest
from companies import MODEL, company, vector
from pytest import approx

from benchmarks.quality import questions
from benchmarks.quality.questions import Asked, Score, held, place, read, score
from index.base import Spec
from index.open import open_index
from model.errors import DataError

ROOT = Path(__file__).parents[2]
SETS = {kind: read(ROOT / questions.SETS / f"{kind}.tsv") for kind in questions.KINDS}


def test_there_are_questions_enough_of_each_kind_and_none_twice():
    assert {kind: len(asked) >= least for (kind, asked), least in zip(SETS.items(), (60, 60, 40), strict=True)} == {
        "names": True,
        "short": True,
        "long": True,
    }
    texts = [one.text.casefold() for asked in SETS.values() for one in asked]
    assert len(set(texts)) == len(texts)


def test_every_expected_company_is_among_the_examples():
    lines = (ROOT / "examples" / "companies.jsonl").read_text(encoding="utf-8").splitlines()
    ids = {json.loads(line)["id"] for line in lines}
    assert {id for asked in SETS.values() for one in asked for id in one.expected} <= ids


def test_kinds_are_what_they_are_called():
    assert max(len(one.text.split()) for one in SETS["short"]) <= 8
    assert min(len(one.text.split()) for one in SETS["long"]) >= 20
    assert all(len(one.expected) == 1 for kind in ("names", "long") for one in SETS[kind])


def test_scores_are_of_the_first_that_is_expected():
    expected = frozenset("ab")
    places = [
        place(list("xbya"), expected),
        place(list("a"), expected),
        place(list("xyzqa"), expected),
        place([], expected),
    ]
    assert places == [2, 1, 5, None]
    # MRR (1/2 + 1 + 1/5 + 0) / 4, first one of four, among three two of four
    assert score(places) == Score(approx(0.425), 0.25, 0.5)


@pytest.mark.parametrize(
    ("kind", "ours", "met"),
    [
        ("long", Score(0.8, 0.7, 0.9), "yes"),  # as good as the better in each
        ("long", Score(0.79, 0.9, 0.9), "no"),
        ("long", Score(0.8, 0.9, 0.89), "no"),
        ("short", Score(0.9, 0.9, 0.94), "no"),
        ("short", Score(0.9, 0.9, 0.95), "yes"),
        ("names", Score(0.99, 0.97, 1.0), "no"),
        ("names", Score(0.99, 0.98, 1.0), "yes"),
    ],
)
def test_the_default_mode_is_held_to_the_better_of_the_others(kind, ours, met):
    others = {"vector": Score(0.8, 0.7, 0.8), "words": Score(0.6, 0.5, 0.9)}
    assert held(kind, {"hybrid": ours, **others})["met"] == met


def test_every_mode_is_asked_and_every_other_question_held_out(tmp_path):
    index = open_index(str(tmp_path / "index"), create=Spec(MODEL, 4))
    index.write(
        [
            company("air", 1, (1, 0, 0, 0), name="Ryanair", description="Flies cheaply"),
            company("beer", 1, (0, 1, 0, 0), name="Brewer", description="Brews lager"),
        ]
    )
    asked = [Asked("ryan air", frozenset({"air"})), Asked("lager", frozenset({"beer"}))]
    north = vector(0.1, 1, 0, 0)  # beer is meant, and air comes second
    rows = questions.measure(index, {"names": asked}, {"ryan air": north, "lager": north})
    assert {case: (row["first"], row["first held out"]) for case, row in rows.items()} == {
        "names, hybrid": (1.0, 1.0),
        "names, vector": (0.0, 1.0),
        "names, words": (0.0, 1.0),
    }
    assert rows["names, vector"]["MRR of all"] == 0.75  # (1/2 + 1) / 2


def test_a_set_that_is_broken_is_told_with_its_line(tmp_path):
    file = tmp_path / "names.tsv"
    file.write_text("question\texpected\nRyanair\tryanair\nno ids here\n")
    with pytest.raises(DataError, match=r"names.tsv:3: "):
        read(file)
    with pytest.raises(DataError, match="make demo"):
        questions.run(tmp_path, model=tmp_path / "none")
