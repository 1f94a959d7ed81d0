"""How two commits are held against each other: who is asked what, and when."""

import subprocess

import numpy as np
import pytest

from benchmarks.compare import command, sides


class Pretended:
    def __init__(self, name, log):
        self._name, self._log = name, log

    def ask(self, question):
        self._log.append((self._name, question))
        return len(self._log)


def test_both_sides_are_asked_the_same_in_turns_and_the_first_questions_do_not_count(monkeypatch):
    monkeypatch.setattr(command, "WARM_UP", 1)
    log = []
    both = {name: Pretended(name, log) for name in (sides.BEFORE, sides.AFTER)}
    taken = command.in_turns(both, ["a", "b", "c"])
    assert [question for _, question in log] == ["a", "a", "b", "b", "c", "c"]
    # after, before; after, before; and then the other way round, so that no one always follows
    assert [name for name, _ in log] == ["after", "before", "after", "before", "before", "after"]
    assert np.array_equal(taken["after"], [3, 6]) and np.array_equal(taken["before"], [4, 5])


def test_a_side_that_does_not_start_names_the_file_that_says_why(tmp_path, monkeypatch):
    monkeypatch.setattr(sides, "FOLDER", tmp_path)
    with pytest.raises(sides.CompareError, match=r"after\.log says why"):
        sides.Side("after", tmp_path, ["serving", "no such version", "no such texts"])
    assert "Error" in (tmp_path / "after.log").read_text()


def test_another_commit_is_checked_out_beside_the_tree_and_kept(tmp_path, monkeypatch):
    def git(*words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True, capture_output=True)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sides, "FOLDER", tmp_path / "build")
    git("init")
    (tmp_path / "one").write_text("as it was")
    git("add", "one")
    git("commit", "-m", "first")
    (tmp_path / "one").write_text("as it is")
    tree = sides.checked_out("HEAD")
    assert (tree / "one").read_text() == "as it was" and sides.checked_out("HEAD") == tree
    with pytest.raises(sides.CompareError, match="no commit"):
        sides.checked_out("nowhere")
