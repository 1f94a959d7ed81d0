import pytest
from pytest import approx

from index.ranking.name_matching import ALIKE, MISSPELT, core, likeness, spellings


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("ryan air", "Ryanair"),
        ("easyJet plc", "easyJet"),
        ("redbull", "Red Bull"),
        ("coca cola", "Coca-Cola"),
        ("ATT", "AT&T"),
        ("eon", "E.ON"),
        ("Ferrari N.V.", "Ferrari"),
        ("novo nordisk a/s", "Novo Nordisk"),
        ("loreal", "L\u2019Oréal"),
        ("home depot", "The Home Depot"),
        ("Canal Plus", "Canal+"),
        ("Smith & Nephew", "Smith+Nephew"),
        ("P&G", "Procter & Gamble"),
        ("the it company", "The It Company"),
        ("京东", "京东"),
    ],
)
def test_a_name_is_known_however_it_is_typed(question, name):
    assert likeness(question, name) == ALIKE


@pytest.mark.parametrize("question", ["addidas", "adidsa", "adidaz", "addas", "Adidass"])
def test_a_letter_may_be_wrong(question):
    assert likeness(question, "Adidas AG") == MISSPELT


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("visa", "Vista"),  # too short to be misspelt
        ("adudas shoes", "Adidas"),
        ("bdidas", "Adidas"),
        ("pg", "Procter & Gamble"),  # without the "&" as likely a word
        ("arm", "Alarm Systems"),  # not a whole word
        ("", "Adidas"),
        ("adidas", ""),
        ("...", "Adidas"),
    ],
)
def test_what_only_looks_alike_is_not(question, name):
    assert likeness(question, name) == 0


def test_part_of_a_name_counts_by_the_root_of_its_share():
    assert likeness("zurich", "Zurich Insurance") == approx(0.6 * (6 / 15) ** 0.5)
    assert likeness("JP Morgan", "JPMorgan Chase") == approx(0.6 * (8 / 13) ** 0.5)
    assert likeness("dr pepper", "Keurig Dr Pepper") == approx(0.6 * (8 / 14) ** 0.5)


def test_a_name_in_a_question_counts_less_unless_the_question_ends_as_registers_do():
    assert likeness("progressive lenses", "Progressive") == approx(0.2 * (11 / 17) ** 0.5)
    assert likeness("Deutsche Lufthansa AG", "Lufthansa") == approx(0.6 * (9 / 17) ** 0.5)


def test_words_that_all_companies_have_tell_none():
    assert core("The Boston Beer Company, Inc.") == ("boston", "beer")
    assert core("Group Holdings") == ("group", "holdings")  # nothing else is left


def test_what_is_no_name_has_no_spellings():
    assert spellings("!?") == spellings("") == spellings("x" * 61) == ""
