"""From answers to the next model: refused without any, published where it is no worse, kept back where it is."""

import itertools
import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import refusal
from embedded import EmbeddedServer
from place import ROOT
from trades import TINY, TRADES

from index.base import Spec
from index.document import Document, text_hash
from index.open import open_index
from infra.comparison import encoder
from infra.retrain import main
from model.contract import Contract
from search.feedback.store import Answer, open_feedback
from serving.storage.base import FACTS_FILE
from serving.storage.open import open_base

INDEX, BASE = "build/demo/index", "build/demo/serving/pause"
QUICK = shlex.join([*TINY, "--contrastive", "1", "--epochs", "8", "--dev", "20%", "--prior", "0.33"])
OF_A_TRADE = 8


def companies() -> dict[str, dict]:
    generator = np.random.default_rng(5)
    made = {}
    for trade, words in TRADES.items():
        for number in range(OF_A_TRADE):
            text = " ".join(generator.choice(words.split(), 4, replace=False))
            made[f"{trade}-{number}"] = {"id": f"{trade}-{number}", "description": f"{text} {number}"}
    return made


COMPANIES = companies()
PAIRS = list(itertools.combinations(sorted(COMPANIES), 2))


def alike(left: str, right: str) -> bool:
    return left.split("-")[0] == right.split("-")[0]


@pytest.fixture(scope="session")
def versions(trained, tmp_path_factory) -> dict[str, Path]:
    """The trained model as a version, and one whose weights say nothing."""
    from model.export import export
    from model.network.saved import open_model

    made = {}
    for name, noise in (("good", 0.0), ("poor", 1.0)):
        model, generator = open_model(str(trained)), np.random.default_rng(3)
        for weight in model.encoder.source.body.trainable_weights:
            weight.assign_add(generator.normal(0, noise, weight.shape).astype(np.float32))
        made[name] = export(model, tmp_path_factory.mktemp(name) / "pause", {})
    return made


@pytest.fixture
def start(versions, tmp_path, monkeypatch):
    """As after `make demo` with a model of that name, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    known = [
        f"{left}\t{right}\t{'similar' if alike(left, right) and number % 3 == 0 else ''}"
        for number, (left, right) in enumerate(PAIRS)
    ]
    Path("examples/questions").mkdir(parents=True)
    Path("examples/pairs.tsv").write_text("\n".join(["left\tright\tlabel", *known]) + "\n")
    for name, start in (("short", 0), ("long", 2)):
        rows = [
            f"{word} {other}\t{'|'.join(id for id in COMPANIES if id.startswith(trade))}"
            for trade, words in TRADES.items()
            for word, other in itertools.pairwise(words.split()[start:])
        ]
        Path(f"examples/questions/{name}.tsv").write_text("\n".join(["question\texpected", *rows]) + "\n")

    def started(live: str):
        shutil.copytree(versions[live], Path(BASE) / "1")
        contract = Contract.from_json(json.dumps(json.loads((versions[live] / FACTS_FILE).read_text())["contract"]))
        for url in (INDEX, "build/other/index"):
            fill(url, contract, encoder(versions[live], live))
        return contract.fingerprint

    return started


def fill(url: str, contract: Contract, encode) -> None:
    index = open_index(url, create=Spec(contract.fingerprint, contract.dimension))
    vectors = encode(list(COMPANIES.values()))
    documents = [
        Document(
            id,
            1,
            description=one["description"],
            model=contract.fingerprint,
            embedding=vector,
            text_hash=text_hash(contract.recipe.render(one)),
        )
        for (id, one), vector in zip(COMPANIES.items(), vectors, strict=True)
    ]
    assert {outcome.status for outcome in index.write(documents)} == {"indexed"}


def say(true: bool = True, who: str = "ann", pairs=PAIRS) -> None:
    """Answers on pairs: what is so, or the opposite."""
    open_feedback(INDEX).add(
        [
            Answer(
                "list", at, who, "m", left, None, right, "similar" if alike(left, right) == true else "not_similar", 1
            )
            for at, (left, right) in enumerate(pairs, start=1)
        ]
    )


def retrain(*flags: str):
    """As a command of its own: exit code, stdout, stderr."""
    command = [sys.executable, "-m", "infra.retrain", "--train", QUICK, *flags]
    done = subprocess.run(command, capture_output=True, encoding="utf-8")
    return done.returncode, done.stdout, done.stderr


def live() -> tuple[list[int], str]:
    base = open_base(BASE)
    return base.versions(), base.contract(base.newest()).fingerprint


# refused


def test_without_an_answer_nothing_is_done(start, capfd):
    fingerprint = start("good")
    told = refusal(capfd, main)
    assert "nobody has answered yet" in told
    assert not Path("build/retrain").exists()
    assert (live(), open_index(INDEX).spec().model) == (([1], fingerprint), fingerprint)


def test_answers_taken_back_are_none(start, capfd):
    start("good")
    open_feedback(INDEX).add(
        [
            Answer("list", at, "ann", "m", "cars-0", None, "cars-1", said, 1)
            for at, said in ((1, "similar"), (2, "undo"))
        ]
    )
    assert "nobody has answered yet" in refusal(capfd, main)


def test_an_index_that_is_not_there_is_one_line(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert "no index at" in refusal(capfd, main)


def test_a_base_path_without_its_server_is_one_line(capfd):
    assert "--to gs://b/m without --serving" in refusal(capfd, main, "--to", "gs://b/m")


def test_answers_on_one_list_alone_leave_nothing_to_judge_by(start):
    fingerprint = start("good")
    say(pairs=[pair for pair in PAIRS if pair[0] == "banking-0"])
    code, _, complained = retrain()
    assert code == 2 and "all answers are on one company" in complained
    assert live() == ([1], fingerprint)


# trained


def test_what_is_better_is_published_and_the_index_moved_and_the_others_named(start, capfd):
    former = start("poor")
    say()
    code, said, complained = retrain()
    assert code == 0, complained
    versions, fingerprint = live()
    assert (versions, open_index(INDEX).spec().model) == ([1, 2], fingerprint) != former
    assert open_index(INDEX).status().live == len(COMPANIES)
    assert "answers held out" in said and "known pairs" in said and "questions" in said and "95% interval" in said
    assert f"build/other/index has vectors of model {former}, goes on with version 1" in said
    assert "python -m pipelines.reindex --index build/other/index" in said
    assert open_index("build/other/index").spec().model == former

    told = refusal(capfd, main)
    assert "no new answers" in told  # the lineage of what is live now has these

    shutil.rmtree(INDEX)  # killed between publishing and moving: the index is still the former model's
    fill(INDEX, open_base(BASE).contract(1), encoder(Path(BASE) / "1", "former"))
    code, said, complained = retrain()
    assert (code, open_index(INDEX).spec().model) == (0, fingerprint), complained
    assert "train on them" not in said


def test_what_is_worse_is_kept_back_unless_somebody_insists(start):
    former = start("good")
    say(true=False)
    code, said, complained = retrain()
    assert code == 1, complained
    assert "worse on" in complained and "stays in build/retrain/serving/1" in complained
    assert Path("build/retrain/serving/1/saved_model.pb").exists()
    assert (live(), open_index(INDEX).spec().model) == (([1], former), former)

    with EmbeddedServer(Path(BASE)) as server:  # keeps one version: what it served before is gone
        code, said, complained = retrain("--force", "--serving", server.address)
    assert code == 0, complained
    assert "published all the same, by --force" in said
    assert live()[0] == [1, 2]
    assert open_index(INDEX).spec().model == live()[1] != former
    assert f"build/other/index has vectors of model {former}, which {server.address} serves no more" in complained
