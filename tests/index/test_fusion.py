from pytest import approx

from index.fusion import fuse


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
