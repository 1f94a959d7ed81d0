"""Steps one after the other: how long each took, what ends them early, and what is not done twice."""

import json

import pytest
from commands import answer
from trades import TINY, write_pairs
from version_folders import FACTS, write_version

from common.errors import InputError
from infra import steps
from infra.steps import Stopped, follow, holds

FINGERPRINT = "feedfacefeedface"


def failing(error):
    def step():
        raise error

    return step


def test_all_steps_are_done_and_their_times_told(capsys):
    done = []
    code, said, _ = answer(capsys, lambda _: follow([(name, lambda name=name: done.append(name)) for name in "ab"]))
    assert (code, done) == (0, ["a", "b"])
    assert [line.split()[-1] for line in said.split("== done\n")[1].splitlines()] == ["a", "b", "all"]


@pytest.mark.parametrize(
    ("step", "code", "words"),
    [
        (failing(InputError("no such file")), 2, "error: second: no such file"),
        (failing(Stopped("it is worse", 1)), 1, "it is worse"),
        (lambda: steps.command("model.export", "--modle", "x"), 2, "error: second failed; the reason is above"),
    ],
    ids=["mistake", "stopped", "command"],
)
def test_the_first_step_that_fails_ends_them_with_its_code(capfd, step, code, words):
    after = []
    given, _, complained = answer(
        capfd, lambda _: follow([("first", lambda: None), ("second", step), ("third", lambda: after.append(1))])
    )
    assert (given, after) == (code, [])
    assert words in complained
    assert "Traceback" not in complained


def test_a_base_holds_the_model_of_its_newest_version_alone(tmp_path):
    assert not holds(str(tmp_path / "none"), FINGERPRINT)
    for number, fingerprint in ((1, FINGERPRINT), (2, "0123456789abcdef")):
        facts = write_version(tmp_path / "pause" / str(number)) / FACTS
        contract = {"fingerprint": fingerprint, "dimension": 4, "max_tokens": 16, "text_recipe": "{description}"}
        facts.write_text(json.dumps(json.loads(facts.read_text()) | {"contract": contract}))
    assert holds(str(tmp_path / "pause"), "0123456789abcdef")
    assert not holds(str(tmp_path / "pause"), FINGERPRINT)


def test_a_run_on_other_data_is_replaced_and_one_on_the_same_kept(tmp_path, monkeypatch, capsys):
    commands = []
    monkeypatch.setattr(steps, "command", lambda *words: commands.append(words))
    pairs = write_pairs(tmp_path / "pairs.tsv", labelled=20, unlabelled=20)
    arguments = ["--pairs", str(pairs), "--out", str(tmp_path / "run"), *TINY]
    steps.train_unless_there(arguments)
    from model.train import parser
    from model.training.config import TrainConfig
    from model.training.prepare import prepare
    from model.training.run import Run

    config = TrainConfig(**vars(parser().parse_args(arguments)))
    Run(config, prepare(config).hashes).start()
    steps.train_unless_there(arguments)
    assert (tmp_path / "run" / "config.json").exists()
    write_pairs(pairs, labelled=30, unlabelled=20)
    steps.train_unless_there(arguments)
    assert not (tmp_path / "run").exists()
    assert "training anew" in capsys.readouterr().out
    assert commands == [("model.train", *arguments)] * 3
