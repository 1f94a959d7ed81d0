import gzip
import json

import pytest

from benchmarks import data
from benchmarks.__main__ import main, table


@pytest.fixture
def peers(tmp_path, monkeypatch):
    """Six companies in a ring, each listing the next two as its peers."""
    monkeypatch.setattr(data, "BUILD", tmp_path / "build")
    folder = tmp_path / "data" / "companies"
    folder.mkdir(parents=True)
    lines = "\n".join(json.dumps({"id": str(number), "description": f"maker of {number}"}) for number in range(6))
    (folder / "peers-companies.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    pairs = [f"{number}\t{(number + step) % 6}" for number in range(6) for step in (1, 2)]
    (folder / "peers-pairs.tsv").write_text("anchor\tcandidate\n" + "\n".join(pairs) + "\n0\tnobody\n")
    return tmp_path / "data"


def rows(path):
    return [line.split("\t") for line in path.read_text().splitlines()[1:]]


def test_missing_data_is_one_line_that_names_the_flag(tmp_path, capsys):
    assert main(["train", "--data", str(tmp_path)]) == 2
    error = capsys.readouterr().err.strip()
    assert error.startswith("error: ") and "\n" not in error and "--data" in error


def test_no_training_pair_touches_a_held_out_anchor(peers):
    _, train, test = data.peer_pairs(peers, held_out=0.34)
    held = {left for left, _, _ in rows(test)}
    assert len(held) == 2  # round(0.34 * 6)
    assert not held & {end for row in rows(train) for end in row[:2]}


def test_every_listed_pair_of_known_companies_is_a_positive_and_unlabelled_ones_are_none_of_them(peers):
    _, train, test = data.peer_pairs(peers)
    positives = {(left, right) for left, right, label in rows(train) if label == "peer"}
    unlabelled = {(left, right) for left, right, label in rows(train) if not label}
    assert len(positives) == 12 and not rows(test)
    assert unlabelled and not unlabelled & positives
    assert all(left != right for left, right in unlabelled)


def test_a_table_has_a_column_for_each_case_and_a_row_for_each_figure():
    lines = table({"a": {"ratio": 1.5}, "b": {"ratio": 2, "note": "x"}}).splitlines()
    assert [line.split() for line in lines] == [["a", "b"], ["ratio", "1.5", "2"], ["note", "x"]]
