import gzip
import json

import numpy as np
import pytest

from model.data.companies import read_companies
from model.data.pairs import DataError, Pairs, hide_labels, read_pairs, split, strata
from model.data.tsv import read_columns

HEADER = "left\tright\tlabel\n"


def written(tmp_path, content, name="pairs.tsv"):
    path = tmp_path / name
    content = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


def refusal(read, path, **options):
    """The message of the DataError, which is one line and names the file."""
    with pytest.raises(DataError) as refused:
        read(path, **options)
    message = str(refused.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    return message.removeprefix(str(path))


def made(labels, labelled=None, multi_label=False):
    """Pairs of which only the labels matter; a row of zeros is negative unless `labelled` says otherwise."""
    labels = np.array(labels, np.float32)
    ends = np.arange(len(labels))
    labelled = np.ones(len(labels), bool) if labelled is None else np.array(labelled, bool)
    names = tuple("abcdefgh"[: labels.shape[1]])
    return Pairs(tuple(map(str, ends)), ends, ends, labels, labelled, names, multi_label)


def rows_of(pairs):
    """(left text, right text, {labels}) of each row, None where unlabelled."""
    return [
        (
            pairs.items[left],
            pairs.items[right],
            {name for name, mark in zip(pairs.names, marks, strict=True) if mark} if labelled else None,
        )
        for left, right, marks, labelled in zip(pairs.left, pairs.right, pairs.labels, pairs.labelled, strict=True)
    ]


# reading pairs

TWO_ROWS = HEADER + "a bank\ta farm\tsimilar\na farm\ta pub\t\n"
READ = [("a bank", "a farm", {"similar"}), ("a farm", "a pub", None)]


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (TWO_ROWS, "pairs.tsv"),
        (TWO_ROWS, "pairs.tsv.gz"),
        (b"\xef\xbb\xbf" + TWO_ROWS.encode(), "pairs.tsv"),
        (TWO_ROWS.replace("\n", "\r\n"), "pairs.tsv"),
        (TWO_ROWS.rstrip("\n"), "pairs.tsv"),
        (TWO_ROWS.replace("\n", "\n\n"), "pairs.tsv"),
        ("label\tid\tright\tleft\nsimilar\t1\ta farm\t a bank \n\t2\ta pub\ta farm\n", "pairs.tsv"),
    ],
    ids=["plain", "gz", "byte order mark", "carriage returns", "no last line end", "blank lines", "other columns"],
)
def test_a_file_reads_the_same_in_every_dress(tmp_path, content, name):
    pairs = read_pairs(written(tmp_path, content, name))
    assert rows_of(pairs) == READ
    assert pairs.names == ("similar",)
    assert len(pairs) == 2
    assert not pairs.multi_label
    assert not pairs.has_negatives


def test_an_item_of_many_rows_is_kept_once(tmp_path):
    pairs = read_pairs(written(tmp_path, TWO_ROWS))
    assert pairs.items == ("a bank", "a farm", "a pub")
    assert pairs.left.tolist() == [0, 1]
    assert pairs.right.tolist() == [1, 2]


@pytest.mark.parametrize("strange", ["\u2028", "\u2029", "\x0c", "\x0b", "\x1c", "\x85", "\r"])
def test_only_a_line_feed_ends_a_row(tmp_path, strange):
    text = f"one{strange}two"
    assert len(text.splitlines()) == 2  # Python would have split here
    pairs = read_pairs(written(tmp_path, f"{HEADER}{text}\tthree\tsimilar\n"))
    assert rows_of(pairs) == [(text, "three", {"similar"})]


def test_columns_of_other_names_can_be_mapped(tmp_path):
    path = written(tmp_path, "premise\tgold\thypothesis\na\tx\tb\n")
    pairs = read_pairs(path, columns={"left": "premise", "right": "hypothesis", "label": "gold"})
    assert rows_of(pairs) == [("a", "b", {"x"})]


def test_a_mark_can_mean_unlabelled(tmp_path):
    path = written(tmp_path, HEADER + "a\tb\t-\nc\td\tx\ne\tf\t\n")
    pairs = read_pairs(path, unlabelled="-")
    assert pairs.names == ("x",)
    assert pairs.labelled.tolist() == [False, True, False]


def test_a_negative_label_is_labelled_and_of_no_class(tmp_path):
    path = written(tmp_path, HEADER + "a\tb\tno\nc\td\tyes\ne\tf\t\n")
    assert read_pairs(path).names == ("no", "yes")
    pairs = read_pairs(path, negative="no")
    assert pairs.names == ("yes",)
    assert pairs.labels.tolist() == [[0.0], [1.0], [0.0]]
    assert pairs.labelled.tolist() == [True, True, False]
    assert pairs.has_negatives


def test_several_labels_of_a_row_are_joined_by_a_bar(tmp_path):
    pairs = read_pairs(written(tmp_path, HEADER + "a\tb\trival|buyer\nc\td\tbuyer\ne\tf\t\n"))
    assert pairs.names == ("buyer", "rival")  # sorted
    assert pairs.labels.tolist() == [[1.0, 1.0], [1.0, 0.0], [0.0, 0.0]]
    assert pairs.multi_label


def test_blanks_and_empty_places_around_bars_are_no_labels(tmp_path):
    pairs = read_pairs(written(tmp_path, HEADER + "a\tb\trival | buyer|\nc\td\tbuyer\ne\tf\t|\n"))
    assert pairs.names == ("buyer", "rival")
    assert pairs.labelled.tolist() == [True, True, False]


def test_given_names_fix_the_classes_and_their_order(tmp_path):
    path = written(tmp_path, HEADER + "a\tb\ty\n")
    pairs = read_pairs(path, names=("z", "y", "x"))
    assert pairs.names == ("z", "y", "x")
    assert pairs.labels.tolist() == [[0.0, 1.0, 0.0]]


def test_a_label_that_was_not_trained_is_refused_with_its_row(tmp_path):
    path = written(tmp_path, HEADER + "a\tb\ty\n\nc\td\tw\n")
    assert refusal(read_pairs, path, names=("y",)) == ", row 4: label 'w' is not among the trained ones (y)"
    assert rows_of(read_pairs(path, names=("y",), negative="w"))[1] == ("c", "d", set())


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", ": the file is empty; its first line must name the columns left, right, label"),
        ("\n\n", ": the file is empty"),
        (HEADER, ": no rows below the header"),
        ("left,right,label\na,b,c\n", ": the header has no column 'left' (it reads 'left,right,label')"),
        ("left\tright\na\tb\n", ": the header has no column 'label'"),
        (HEADER + "a\tb\tx\nc\td\n", ", row 3: 2 columns where the header has 3"),
        (HEADER + "\n \tb\tx\n", ", row 3: the text in column 'left' is empty"),
        (HEADER + "a\t\tx\n", ", row 2: the text in column 'right' is empty"),
        (HEADER.encode() + b"a\tb\tx\nc\xff\td\tx\n", ", row 3: not UTF-8 (invalid start byte at byte 1 of the row)"),
    ],
)
def test_a_fault_is_named_with_its_file_and_row(tmp_path, content, said):
    assert refusal(read_pairs, written(tmp_path, content)).startswith(said)


def test_a_missing_mapped_column_is_named_as_mapped(tmp_path):
    assert "'gold'" in refusal(read_pairs, written(tmp_path, TWO_ROWS), columns={"label": "gold"})


def test_files_that_cannot_be_read_are_refused(tmp_path):
    assert refusal(read_pairs, tmp_path / "none.tsv") == ": no such file"
    (tmp_path / "directory").mkdir()
    assert "directory" in refusal(read_pairs, tmp_path / "directory")


def test_broken_gz_files_are_refused(tmp_path):
    rows = "".join(f"text number {number}\tanother {number}\tsimilar\n" for number in range(200))
    whole = gzip.compress((HEADER + rows).encode())
    broken = {"truncated": whole[:-20], "no gz": rows.encode(), "garbled": whole[:60] + b"\xff" * 60 + whole[120:]}
    for name, content in broken.items():
        path = tmp_path / f"{name}.tsv.gz"
        path.write_bytes(content)
        assert refusal(read_pairs, path)


# reading columns


def test_columns_come_in_the_order_asked_for_with_the_numbers_of_their_rows(tmp_path):
    path = written(tmp_path, 'a\tb\tc\n1\t"x\t\n\n2\t y \tz\n')
    assert read_columns(path, ["c", "b"]) == [(2, ["", '"x']), (4, ["z", "y"])]


def test_a_missing_column_is_told_of_another_way_out_only_where_there_is_one(tmp_path):
    path = written(tmp_path, "left\tright\na\tb\n")
    said = ": the header has no column 'label' (it reads 'left\\tright'); line 1 must name the tab-separated columns "
    assert refusal(read_columns, path, names=["left", "label"]) == f"{said}left, label"
    assert refusal(read_pairs, path) == f"{said}left, right, label, or --columns must map them"


# reading companies


def test_companies_are_known_by_their_ids(tmp_path):
    lines = [{"id": "b", "description": "Beer.", "tags": ["x"]}, {"id": 7, "description": "Banks\u2028too."}]
    content = "\n\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
    for name in ("companies.jsonl", "companies.jsonl.gz"):
        companies = read_companies(written(tmp_path, content, name))
        assert companies == {"b": lines[0], "7": lines[1]}


GOOD = '{"id": "a", "description": "Beer."}\n'


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", ": no companies in it"),
        (GOOD + "{rubbish\n", ", row 2: not JSON"),
        (GOOD + '["a"]\n', ", row 2: a company needs an 'id'"),
        (GOOD + '{"description": "Beer."}\n', ", row 2: a company needs an 'id'"),
        (GOOD + '{"id": "", "description": "Beer."}\n', ", row 2: a company needs an 'id'"),
        (GOOD + '\n{"id": "b"}\n', ", row 3: company 'b' has no 'description'"),
        (GOOD + '{"id": "b", "description": " "}\n', ", row 2: company 'b' has no 'description'"),
        (GOOD + '{"id": "b", "description": null}\n', ", row 2: company 'b' has no 'description'"),
        (b'{"id": "\xff"}', ", row 1: not UTF-8"),
    ],
)
def test_a_faulty_company_is_named_with_its_row(tmp_path, content, said):
    assert refusal(read_companies, written(tmp_path, content, "companies.jsonl")).startswith(said)


# strata


def test_a_row_of_several_classes_counts_for_its_rarest():
    # class a has 3 rows, b 2, c 1: row 0 (a, b) goes to b, row 1 (a, b, c) to c, row 2 (a) to a
    pairs = made([[1, 1, 0], [1, 1, 1], [1, 0, 0]], multi_label=True)
    assert [rows.tolist() for rows in strata(pairs)] == [[2], [0], [1]]


def test_negatives_and_unlabelled_rows_are_strata_of_their_own_and_come_last():
    pairs = made([[0, 0], [0, 1], [0, 0], [1, 0], [0, 0]], labelled=[False, True, True, True, False])
    assert [rows.tolist() for rows in strata(pairs)] == [[3], [1], [2], [0, 4]]


def test_a_class_without_rows_has_no_stratum():
    assert [rows.tolist() for rows in strata(made([[0, 1], [0, 1]]))] == [[0, 1]]


def test_pairs_without_any_class_have_strata_too():
    # nobody labelled anything: the check that says so comes after the split
    pairs = made(np.zeros([3, 0]), labelled=[False, True, False])
    assert [rows.tolist() for rows in strata(pairs)] == [[1], [0, 2]]


# hide_labels


def thousand():
    """800 rows of a, 100 of b, 2 of c, 98 unlabelled, shuffled."""
    order = np.random.default_rng(1).permutation(1000)
    labels = np.zeros([1000, 3], np.float32)
    labels[:800, 0] = labels[800:900, 1] = labels[900:902, 2] = 1.0
    return made(labels[order], labels[order].any(axis=1))


def test_each_class_keeps_its_share_of_labels_and_at_least_one():
    # 10 % of 800, 100, 2 is 80, 10, 0.2, of which at least one stays
    pairs = thousand()
    hidden = hide_labels(pairs, 0.1, seed=0)
    assert hidden.labels.sum(axis=0).tolist() == [80, 10, 1]
    assert hidden.labelled.sum() == 91
    np.testing.assert_array_equal(hidden.labels.any(axis=1), hidden.labelled)
    np.testing.assert_array_equal(hidden.labels[hidden.labelled], pairs.labels[hidden.labelled])  # none is invented
    assert len(hidden) == 1000
    assert pairs.labelled.sum() == 902  # what was given stays as it was


def test_negatives_keep_their_share_too():
    # 50 % of 4 positives and of 6 negatives
    hidden = hide_labels(made([[1]] * 4 + [[0]] * 6), 0.5, seed=0)
    assert hidden.labels.sum() == 2
    assert hidden.labelled.sum() == 2 + 3


def test_hiding_is_drawn_by_its_seed():
    first, same, other = (hide_labels(thousand(), 0.1, seed).labelled for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, same)
    assert (first != other).any()


def test_a_whole_share_hides_nothing():
    np.testing.assert_array_equal(hide_labels(thousand(), 1.0, seed=0).labels, thousand().labels)


# split


def test_a_split_takes_its_share_of_every_stratum_and_every_row_once():
    # 5 % of 800, 100, 2, 98 is 40, 5, 0.1, 4.9: rounded 40, 5, 0, 5
    training, development = split(thousand(), 0.05, seed=0)
    assert development.labels.sum(axis=0).tolist() == [40, 5, 0]
    assert (~development.labelled).sum() == 5
    assert len(development) == 50
    rows = np.concatenate([training.left, development.left])
    assert sorted(rows) == list(range(1000))
    np.testing.assert_array_equal(training.labels, thousand().labels[training.left])
    assert development.names == training.names == ("a", "b", "c")


def test_a_split_is_drawn_by_its_seed():
    first, same, other = (split(thousand(), 0.05, seed)[1].left for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, same)
    assert set(first) != set(other)
