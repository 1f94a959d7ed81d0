import itertools

import numpy as np
import pytest

from model.data.pairs import DataError, Pairs, strata
from model.data.sampling import (
    LENGTH_GROUPS,
    KnownPositives,
    assemble,
    epoch_rows,
    length_cuts,
    padded_share,
    steps_per_epoch,
)
from model.data.variants import Variants, of_texts


def made(counts, unlabelled=0, negatives=0, anchors=50, seed=0):
    """Pairs with so many rows of each class, in shuffled order; every anchor (left) has several rows."""
    generator = np.random.default_rng(seed)
    classes = [*np.repeat(np.arange(len(counts)), counts), *[-1] * negatives, *[-2] * unlabelled]
    classes = generator.permutation(np.array(classes))
    rows, items = len(classes), anchors + 500
    labels = (classes[:, None] == np.arange(len(counts))).astype(np.float32)
    return Pairs(
        items=tuple(map(str, range(items))),
        left=generator.integers(0, anchors, rows),
        right=generator.integers(anchors, items, rows),
        labels=labels,
        labelled=classes > -2,
        names=tuple("abcdefgh"[: len(counts)]),
    )


PAIRS = made([100, 37, 16], unlabelled=347, negatives=23)  # 523 rows in 5 subsets


# epochs


@pytest.mark.parametrize("batch_size", [33, 50, 128, 523, 1000])
def test_every_row_is_in_one_batch_of_an_epoch(batch_size):
    batches = epoch_rows(PAIRS, batch_size, seed=0, epoch=0)
    assert len(batches) == steps_per_epoch(PAIRS, batch_size) == -(-523 // batch_size)
    assert sorted(np.concatenate(batches)) == list(range(523))


@pytest.mark.parametrize("batch_size", [33, 50, 128])
def test_every_batch_has_its_part_of_every_subset(batch_size):
    # a subset of n rows gives n / steps to each batch, rounded down or up
    assert [len(rows) for rows in strata(PAIRS)] == [100, 37, 16, 23, 347]
    batches = epoch_rows(PAIRS, batch_size, seed=0, epoch=0)
    for rows in strata(PAIRS):
        counts = [np.isin(batch, rows).sum() for batch in batches]
        assert min(counts) >= max(1, len(rows) // len(batches))
        assert max(counts) <= -(-len(rows) // len(batches))
    for batch in batches:
        assert abs(len(batch) - 523 / len(batches)) < 5
        assert PAIRS.labels[batch].any(axis=0).all()


def test_a_batch_has_every_class_where_a_row_has_several():
    # 40 rows of a alone, 10 of a and b, 10 of b alone: b has 20 rows, one for each of 20 batches, and a has 40
    labels = np.array([[1, 0]] * 40 + [[1, 1]] * 10 + [[0, 1]] * 10, np.float32)
    ends = np.arange(60)
    pairs = Pairs(tuple(map(str, ends)), ends, ends, labels, np.ones(60, bool), ("a", "b"), multi_label=True)
    batches = epoch_rows(pairs, 3, seed=0, epoch=0)
    assert len(batches) == 20
    assert all(labels[batch].any(axis=0).all() for batch in batches)


def test_seed_and_epoch_decide_the_order():
    first, same, later, other = (
        np.concatenate(epoch_rows(PAIRS, 64, seed, epoch)).tolist() for seed, epoch in [(0, 0), (0, 0), (0, 1), (1, 0)]
    )
    assert first == same
    assert first != later
    assert first != other
    assert later != other


def test_the_rows_of_an_anchor_mostly_share_a_batch():
    # 200 anchors with 10 rows each and partners of their own: a batch of 100 rows needs 100 partners and at least 10
    # anchors, 110 texts in all; a random order meets 200 * (1 - (1 - 1/200)^100) = 79 of the anchors, 179 texts
    anchors = np.repeat(np.arange(200), 10)
    labels = (np.arange(2000) % 10 < 3).astype(np.float32)[:, None]
    pairs = Pairs(tuple(map(str, range(2200))), anchors, np.arange(200, 2200), labels, labels[:, 0] > 0, ("similar",))

    def texts_a_batch(batches):
        return np.mean([len(np.unique([pairs.left[rows], pairs.right[rows]])) for rows in batches])

    order = np.random.default_rng(0).permutation(2000)
    at_random = texts_a_batch(np.split(order, 20))
    together = texts_a_batch(epoch_rows(pairs, 100, seed=0, epoch=0))
    assert 174 < at_random < 184
    assert 110 <= together < 112


# batch sizes that cannot work


@pytest.mark.parametrize(("batch_size", "rows"), [(1, 523), (16, 523), (32, 523)])
def test_a_batch_size_that_leaves_a_class_out_is_refused_with_the_smallest_that_works(batch_size, rows):
    # class c has 16 rows: 523 / 16 = 32.7, so that batches of 33 are the smallest of which there are at most 16
    assert len(PAIRS) == rows
    with pytest.raises(DataError, match=r"the smallest batch size that works is 33$") as refused:
        steps_per_epoch(PAIRS, batch_size)
    assert "\n" not in str(refused.value)
    assert steps_per_epoch(PAIRS, 33) == 16


@pytest.mark.parametrize("counts", [[5, 9], [40, 3, 11], [7]])
def test_the_size_named_works_and_one_less_does_not(counts):
    pairs = made(counts, unlabelled=100)
    with pytest.raises(DataError) as refused:
        steps_per_epoch(pairs, 2)
    named = int(str(refused.value).split()[-1])
    assert named > 2
    assert steps_per_epoch(pairs, named)
    with pytest.raises(DataError):
        steps_per_epoch(pairs, named - 1)


def test_the_refusal_names_the_class():
    with pytest.raises(DataError, match="class 'c' has 16 rows, too few to be in each of the 17 batches of 32"):
        steps_per_epoch(PAIRS, 32)


def test_few_unlabelled_rows_are_no_hindrance():
    pairs = made([50], unlabelled=2)
    assert len(epoch_rows(pairs, 5, seed=0, epoch=0)) == 11


def test_few_negatives_are_no_hindrance_and_each_is_in_one_batch():
    pairs = made([50], negatives=2, unlabelled=100)
    batches = epoch_rows(pairs, 10, seed=0, epoch=0)
    negative = pairs.labelled & ~pairs.labels.any(axis=1)
    assert sorted(np.concatenate(batches)) == list(range(152))
    assert sorted(negative[rows].sum() for rows in batches) == [0] * 14 + [1, 1]


# assemble


def two_ended():
    """Items 0 to 5; rows 0-1, 0-2, 3-4, 5-5, the first two close, the third of no class, the last unlabelled."""
    labels = np.array([[1], [1], [0], [0]], np.float32)
    left, right = np.array([0, 0, 3, 5]), np.array([1, 2, 4, 5])
    return Pairs(tuple("abcdef"), left, right, labels, np.array([True, True, True, False]), ("similar",))


def test_rows_point_at_their_texts_and_groups_go_from_short_to_long():
    pairs, lengths = two_ended(), np.array([50, 9, 30, 9, 70, 12])
    rows = np.array([3, 0, 1, 2])
    batch = assemble(pairs, rows, of_texts(pairs.items), lengths, 0.0, np.random.default_rng(0))
    texts = np.concatenate(batch.groups)
    assert len(batch.groups) == LENGTH_GROUPS
    assert sorted(texts) == [0, 1, 2, 3, 4, 5]  # item 0 has two rows, and its text is there once
    assert lengths[texts].tolist() == [9, 9, 12, 30, 50, 70]
    assert texts[batch.left].tolist() == [5, 0, 0, 3]
    assert texts[batch.right].tolist() == [5, 1, 2, 4]
    assert batch.labels.tolist() == [[0], [1], [1], [0]]
    assert batch.labelled.tolist() == [False, True, True, True]
    assert batch.known.shape == (0, 0)  # nobody asked for it
    assert batch.left.dtype == batch.right.dtype == np.int32


def test_both_ends_see_the_variant_that_was_drawn():
    # item i appears whole as text i or poorer as text i + 6; a share of 1 draws the poorer
    pairs, lengths = two_ended(), np.arange(12)[::-1].copy()
    variants = Variants(tuple("abcdefghijkl"), tuple(np.array([item, item + 6]) for item in range(6)))
    batch = assemble(pairs, np.arange(4), variants, lengths, 1.0, np.random.default_rng(0))
    texts = np.concatenate(batch.groups)
    assert texts[batch.left].tolist() == [6, 6, 9, 11]
    assert texts[batch.right].tolist() == [7, 8, 10, 11]
    assert lengths[texts].tolist() == sorted(lengths[texts])


def test_known_pairs_are_those_between_rows_of_the_close_class():
    # the close rows are 0-1 and 0-2: item 0 goes with 1 and with 2, so that neither is the other row's negative
    pairs = two_ended()
    known = KnownPositives(pairs, close_class=0)
    batch = assemble(
        pairs, np.array([2, 0, 1]), of_texts(pairs.items), np.ones(6, int), 0.0, np.random.default_rng(0), known
    )
    assert batch.known.tolist() == [[True, True], [True, True]]


def test_known_positives_hold_in_both_directions_and_with_oneself():
    # known: 0-1 and 0-2; rows (1, 0) and (3, 4) and (2, 3) ask: do 1, 3, 2 go with 0, 4, 3?
    known = KnownPositives(two_ended(), close_class=0)
    asked = known.between(np.array([1, 3, 2]), np.array([0, 4, 3]))
    assert asked.tolist() == [
        [True, False, False],  # 1-0 is 0-1 turned round
        [False, False, True],  # 3-4 has no label; 3 goes with itself
        [True, False, False],
    ]


# lengths


def spent(lengths, cuts):
    return sum(len(group) * group.max() for group in np.split(lengths, cuts) if len(group))


def test_groups_are_cut_where_the_fewest_tokens_are_spent():
    # 2 2 2 | 9 9: 3 * 2 + 2 * 9 = 24 tokens and no padding; cut anywhere else it is more
    lengths = np.array([2, 2, 2, 9, 9])
    assert length_cuts(lengths, groups=2).tolist() == [3]
    assert spent(lengths, [3]) == 24


@pytest.mark.parametrize("groups", [1, 2, 3])
def test_no_other_cuts_spend_fewer_tokens(groups):
    lengths = np.sort(np.random.default_rng(groups).integers(2, 60, 12))
    cuts = length_cuts(lengths, groups)
    assert len(cuts) == groups - 1
    best = min(spent(lengths, other) for other in itertools.combinations(range(13), groups - 1))
    assert spent(lengths, cuts) == best


@pytest.mark.parametrize("count", [0, 1, 3])
def test_fewer_texts_than_groups_leave_groups_empty(count):
    lengths = np.array([4, 5, 6])[:count]
    groups = np.split(lengths, length_cuts(lengths, groups=5))
    assert len(groups) == 5
    assert np.concatenate(groups).tolist() == lengths.tolist()
    assert spent(lengths, length_cuts(lengths, groups=5)) == lengths.sum()


def test_the_padded_share_is_what_padding_takes_of_all_tokens():
    # texts 0 and 1 of 2 and 4 tokens take 2 * 4, text 2 of 10 takes 10: 16 real ones of 18, so that 2 / 18 is padding
    groups = [np.array([0, 1]), np.array([2]), np.array([], int)]
    assert padded_share(np.array([2, 4, 10]), groups) == pytest.approx(2 / 18)
    assert padded_share(np.array([2, 4, 10]), [np.array([0]), np.array([1]), np.array([2])]) == 0.0
