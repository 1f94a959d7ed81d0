import gzip
import json
from types import SimpleNamespace

import pytest
from commands import answer, refusal

from benchmarks.__main__ import main, table
from benchmarks.measures import data
from benchmarks.quality import reproduce
from model.training.config import BASE_ENCODER, TrainConfig


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
    assert "--data" in refusal(capsys, main, "train", "--data", tmp_path)


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


# reproduce


@pytest.fixture
def everything(peers, tmp_path, monkeypatch):
    """The peers, and what else `reproduce` asks for; those files are there and empty."""
    monkeypatch.setattr(reproduce, "RESULTS", tmp_path / "results")
    for name in ("sts/sts12.tsv", "senteval/mr.tsv", "nli/train.tsv.gz"):
        (peers / name).parent.mkdir()
        (peers / name).touch()
    return peers


def test_a_step_that_fails_is_named_in_the_last_line_and_nothing_comes_after_it(everything, tmp_path, capfd):
    code, stdout, stderr = answer(capfd, main, "reproduce", "--data", everything)
    shown, reason, last = stderr.splitlines()
    assert (code, stdout) == (2, "")
    assert shown.startswith("$ python -m model.evaluate sts --model ")
    assert reason.startswith("error: ") and "sts12.tsv: the file is empty" in reason  # the step's own word
    made = tmp_path / "results" / "sts-untouched.json"
    assert last.startswith(f"error: the step that makes {made} (python -m model.evaluate) ended with exit code 2")


def test_a_step_that_is_killed_is_named_with_its_signal(everything, monkeypatch, capsys):
    monkeypatch.setattr(reproduce.subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=-9))
    code, _, stderr = answer(capsys, main, "reproduce", "--data", everything)
    assert code == 2
    assert "(python -m model.evaluate) ended with signal 9" in stderr.splitlines()[-1]


def test_companies_are_cut_alike_for_the_untouched_encoder_and_for_training(everything, monkeypatch):
    commands = []

    def pretend(out, module, *words):
        commands.append([module, *words])
        if out.suffix == ".json":
            out.parent.mkdir(exist_ok=True)
            out.write_text('{"scores": {"auc": 0.5}}')

    monkeypatch.setattr(reproduce, "step", pretend)
    reproduce.run(everything)
    untouched = [words for words in commands if "companies" in words and BASE_ENCODER in words]
    training = [words for words in commands if "model.train" in words]
    assert (len(untouched), len(training)) == (2, 4)  # recipes, shares of the labels
    cuts = {words[words.index("--max_tokens") + 1] for words in untouched + training}
    assert cuts == {"128"} == {str(TrainConfig("", "").max_tokens)}
