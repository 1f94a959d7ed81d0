"""Where sentences end, and that hostile texts take no longer than others of their length."""

import time

import pytest

from search.ranking.sentences import LONGEST, LOOKED_AT, split


def texts(text: str) -> list[str]:
    found = list(split(text))
    assert all(text[one.start : one.end] == one.text for one in found)
    return [one.text for one in found]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One here. Two there! Three?", ["One here.", "Two there!", "Three?"]),
        ("No stop at the end", ["No stop at the end"]),
        ("By Foo Inc. and Bar Ltd. in the U.S. too. Sells.", ["By Foo Inc. and Bar Ltd. in the U.S. too.", "Sells."]),
        ("Costs 3.50 each. Ships in 2.5 days.", ["Costs 3.50 each.", "Ships in 2.5 days."]),
        ("Led by J. Smith. Founded 1999.", ["Led by J. Smith.", "Founded 1999."]),
        ('He said "Go." Then left.', ['He said "Go."', "Then left."]),
        ("Wait... what? Yes.", ["Wait... what?", "Yes."]),
        ("First part\n\nsecond part", ["First part", "second part"]),
        ("Makes:\n- anvils\n- bells", ["Makes:", "- anvils", "- bells"]),
        ("A line\nthat goes on.", ["A line\nthat goes on."]),
        ("電車を作る。船も作る。", ["電車を作る。", "船も作る。"]),
        ("  Blanks around.   And between.  ", ["Blanks around.", "And between."]),
        ("🙂 Smiles. 🙃 Frowns.", ["🙂 Smiles.", "🙃 Frowns."]),
        ("", []),
        (" ... !!! ", []),
    ],
)  # fmt: skip
def test_sentences_are_cut_where_they_end(text, sentences):
    assert texts(text) == sentences


def seconds(text: str) -> float:
    def once() -> float:
        began = time.thread_time()
        list(split(text))
        return time.thread_time() - began

    return min(once() for _ in range(3))


@pytest.mark.parametrize(
    "part",
    [
        ".",
        ".!?",
        "…",
        '."',
        '."""""',
        "\n ",
        " \n",
        "\n\t\r",
        "\n- ",
        "。",
        "。」",
        "w",
        "w. ",
        "e.g. ",
        " ",
        ". \n",
        '"([',
    ],
)
def test_ten_times_as_long_a_text_takes_ten_times_as_long_to_split(part):
    short, long = (seconds((part * length)[:length]) for length in (1_000, 10_000))
    assert long < 30 * short + 0.05  # quadratic: 100 times


def test_of_a_text_without_end_only_the_beginning_is_looked_at():
    found = list(split("It goes on. " * 100_000))
    assert found[-1].end <= LOOKED_AT
    assert seconds("." * 20 * LOOKED_AT) < 30 * seconds("." * LOOKED_AT) + 0.05


def test_a_sentence_without_end_is_cut():
    assert [(one.start, one.end) for one in split("x" * 3 * LONGEST)] == [(0, LONGEST)]
