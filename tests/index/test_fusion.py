from pytest import approx

from index.ranking.fusion import Candidate, blend, fuse


def one(id, score=0.0, name="", labels=()):
    return Candidate(id, name, labels, score)


def test_scores_are_sums_of_reciprocal_ranks():
    # a: 1/61 + 1/62, b: 1/62 + 1/61, c: 1/63
    assert fuse([["a", "b", "c"], ["b", "a"]], 3) == [
        ("a", approx(0.032522, abs=1e-6)),
        ("b", approx(0.032522, abs=1e-6)),
        ("c", approx(1 / 63)),
    ]


def test_third_in_both_beats_first_in_one():
    left, right = ["l1", "l2", "both"], ["r1", "r2", "both"]
    assert [id for id, _ in fuse([left, right], 2)] == ["both", "l1"]  # 2/63 > 1/61


def test_an_id_counts_once_a_ranking():
    assert fuse([["a", "a", "b"]], 9) == [("a", approx(1 / 61)), ("b", approx(1 / 62))]


def test_nothing_fuses_to_nothing():
    assert fuse([[], []], 5) == []


# the first ones, by how much each ranking says


def test_a_word_score_is_worth_a_hundredth_of_a_cosine():
    # near: 0.70; worded: 0.65 + 0.01 * 4 = 0.69, and with a word more 0.65 + 0.01 * 9 = 0.74
    nearest = [one("near", 0.70), one("worded", 0.65)]
    assert blend("a question", nearest, [one("worded", 4.0)]) == ["near", "worded"]
    assert blend("a question", nearest, [one("worded", 9.0)]) == ["worded", "near"]


def test_meaning_decides_where_little_was_found_by_words_and_words_where_much_was():
    # by ranks alone `both` leads in either case: 1/62 + 1/61 > 1/61
    nearest = [one("meant", 0.69), one("both", 0.45)]
    assert blend("short", nearest, [one("both", 5.0)]) == ["meant", "both"]  # 0.45 + 0.05
    assert blend("long", nearest, [one("both", 30.0)]) == ["both", "meant"]  # 0.45 + 0.30


def test_who_is_not_among_the_nearest_is_as_far_as_the_last_of_them():
    # last 0.3, apart 0.3 + 0.01 * 5 = 0.35
    assert blend("q", [one("first", 0.5), one("last", 0.3)], [one("apart", 5.0)]) == ["first", "apart", "last"]
    assert blend("q", [], [one("b", 2.0), one("a", 2.0)]) == ["a", "b"]  # equal ones by id
    assert blend("q", [], []) == []


def test_labels_count_by_their_share_of_the_question_and_whole_ones_twice():
    # courier: two of two words, and both make up one label: 0.2 + 0.2 over 0.3 = 0.7
    # pizzeria: two of two, of which one makes up a label: 0.2 + 0.1 over 0.35 = 0.65
    # grocer: one of two, and no whole label: 0.1 over 0.5 = 0.6
    nearest = [
        one("grocer", 0.5, labels=("packaged food",)),
        one("pizzeria", 0.35, labels=("fast food", "delivery")),
        one("courier", 0.3, labels=("food-delivery",)),
    ]
    assert blend("food delivery", nearest, []) == ["courier", "pizzeria", "grocer"]
    assert blend("what is this", nearest, []) == ["grocer", "pizzeria", "courier"]


def test_a_label_is_found_joined_and_in_the_plural():
    # 0.3 + (0.2 * 2 + 0.2 * 2) / 3 = 0.567
    nearest = [one("landlord", 0.5), one("desks", 0.3, labels=("coworking",))]
    assert blend("co-working spaces", nearest, []) == ["desks", "landlord"]
    assert blend("co-workings", nearest, []) == ["desks", "landlord"]


def test_a_name_outweighs_anything():
    nearest = [one("near", 1.0, "Airways", ("air",))]
    worded = [one("near", 99.0, "Airways", ("air",))]
    for question in ("ryan air", "Ryanair plc", "RYANAIR", "Ryan-Air Ltd."):
        assert blend(question, nearest, worded, [one("meant", 0.0, "Ryanair")]) == ["meant", "near"]


def test_a_misspelt_name_counts_unless_the_word_is_one():
    nearest, named = [one("near", 0.9)], [one("oil", 0.0, "Shell")]
    assert blend("shelf", nearest, [], named) == ["oil", "near"]
    assert blend("shelf", nearest, [one("near", 1.0)], named) == ["near", "oil"]  # somebody makes shelves
    named = [one("bank", 0.0, "Goldman Sachs")]
    assert blend("Goldmann Sachs", nearest, [one("near", 1.0)], named) == ["bank", "near"]  # both words are meant


def test_part_of_a_name_is_divided_among_those_who_have_it():
    # alone: 0.6 * sqrt(4 / 16) = 0.3 over 0.3 beats 0.5; shared by two: 0.3 + 0.15 does not
    nearest, first = [one("near", 0.5), one("last", 0.3)], one("a", 0.0, "Acme abcdefghijkl")
    assert blend("acme", nearest, [], [first])[0] == "a"
    assert blend("acme", nearest, [], [first, one("b", 0.0, "Acme mnopqrstuvwx")])[0] == "near"


def test_many_words_are_no_name():
    question = "one two three four five six seven eight nine"
    nearest = [one("near", 0.5), one("last", 0.3)]
    assert blend(question, nearest, [], [one("named", 0.0, question)]) == ["near", "last", "named"]
