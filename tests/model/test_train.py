import gzip
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from commands import refusal
from trades import TINY, write_pairs

from model.train import main
from model.training.config import TrainConfig
from model.training.prepare import prepare
from model.training.run import Run


def arguments(pairs: Path, out: Path, *more: str) -> list[str]:
    return ["--pairs", str(pairs), "--out", str(out), *TINY, "--prior", "0.33", *more]


def history(out: Path) -> list[dict]:
    return [json.loads(line) for line in (out / "history.jsonl").read_text().splitlines()]


def test_training_leaves_a_model_its_config_its_curve_and_nothing_temporary(trained):
    names = {entry.name for entry in trained.iterdir()}
    assert names == {"config.json", "history.jsonl", "metrics.json", "model.json", "head.safetensors", "encoder"} | {
        "tensorboard"
    }
    metrics = json.loads((trained / "metrics.json").read_text())
    # 320 rows less 20 % for dev = 256, in batches of 32: 8 steps an epoch, 6 epochs
    assert metrics["steps"] == 48 and [row["step"] for row in history(trained)] == list(range(1, 49))
    assert metrics["pairs"] == 256 and metrics["labelled"] == 96


def test_one_class_learns_to_put_its_pairs_above_the_unlabelled_ones(trained):
    # A third of the unlabelled pairs are of one trade too, so a perfect space scores 1 - 0.33 / 2 = 0.83.
    assert json.loads((trained / "metrics.json").read_text())["dev"]["auc"] > 0.7


def test_the_pu_term_is_annealed_over_the_whole_run_and_never_restarts(trained):
    weights = [row["anneal"] for row in history(trained)]
    assert weights[23] == pytest.approx(0.125)  # step 24 of 48: (1/2)^3, in the middle of epoch 3
    assert weights[47] == pytest.approx(1.0)
    assert weights == sorted(weights)


def test_one_class_without_negatives_has_no_supervised_term(trained):
    assert {row["supervised"] for row in history(trained)} == {0.0}


def test_the_contrastive_term_is_off_by_default(similar_pairs, tmp_path):
    assert main(arguments(similar_pairs, tmp_path / "run", "--epochs", "1")) == 0
    rows = history(tmp_path / "run")
    assert {row["contrastive"] for row in rows} == {0.0}
    assert rows[-1]["loss"] == pytest.approx(rows[-1]["pu"])  # anneal is 1 at the last step


def test_the_same_seed_gives_the_same_result_and_another_seed_another(similar_pairs, tmp_path):
    prints = []
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        assert main(arguments(similar_pairs, tmp_path / name, "--epochs", "1", "--seed", seed)) == 0
        prints.append(json.loads((tmp_path / name / "metrics.json").read_text())["fingerprint"])
    assert prints[0] == prints[1] != prints[2]


def test_several_classes_are_learnt_from_the_labels_in_the_data(tmp_path):
    pairs = write_pairs(tmp_path / "p.tsv", 300, 60, lambda left, right: "same" if left == right else "other")
    assert main(arguments(pairs, tmp_path / "run", "--epochs", "8", "--dev", "20%")) == 0
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert json.loads((tmp_path / "run" / "model.json").read_text())["labels"] == ["other", "same"]
    assert metrics["dev"]["accuracy"] > 0.75  # always saying "other" scores 0.67
    assert history(tmp_path / "run")[0]["supervised"] == pytest.approx(0.35, abs=0.1)  # ln 2 / C, C = 2


def test_a_negative_label_turns_two_labels_into_one_class(tmp_path):
    pairs = write_pairs(tmp_path / "p.tsv", 200, 60, lambda left, right: "yes" if left == right else "no")
    out = tmp_path / "run"
    assert main(arguments(pairs, out, "--epochs", "1", "--negative", "no", "--dev", "20%")) == 0
    assert json.loads((out / "model.json").read_text())["labels"] == ["yes"]
    assert history(out)[0]["supervised"] == pytest.approx(0.69, abs=0.15)  # ln 2: binary cross-entropy, C = 1
    assert {"accuracy", "precision", "recall"} <= json.loads((out / "metrics.json").read_text())["dev"].keys()


def test_rows_with_several_labels_are_trained_class_by_class(tmp_path):
    def marks(left, right):
        return "|".join(sorted({left, right}))

    pairs = write_pairs(tmp_path / "p.tsv", 300, 60, marks)
    out = tmp_path / "run"
    assert main(arguments(pairs, out, "--epochs", "1")) == 0
    assert json.loads((out / "model.json").read_text())["labels"] == ["banking", "brewing", "cars"]


@pytest.mark.parametrize(
    "mode", [["--frozen", "--projection", "32"], ["--augment", "1"], ["--frozen", "--augment", "2"]]
)
def test_the_other_modes_of_training_lower_the_loss(similar_pairs, tmp_path, mode):
    out = tmp_path / "run"
    assert main(arguments(similar_pairs, out, "--epochs", "5", "--contrastive", "1", *mode)) == 0
    losses = [row["contrastive"] for row in history(out)]
    assert sum(losses[-5:]) < sum(losses[:5])


def test_a_frozen_encoder_stays_as_it_was(similar_pairs, tmp_path, trained):
    out, encoder = tmp_path / "run", trained / "encoder"
    again = ["--pairs", str(similar_pairs), "--prior", "0.33", "--frozen", "--projection", "32", "--contrastive", "1"]
    assert main([*again, "--encoder", str(encoder), "--epochs", "2", "--out", str(out)]) == 0
    from model.network.encoder import load_encoder

    before, after = (load_encoder(str(folder)).encode(["bank loans"]) for folder in (encoder, out / "encoder"))
    assert before == pytest.approx(after, abs=1e-6)


def test_the_weights_of_a_frozen_encoder_are_hashed_only_where_there_is_a_cache(similar_pairs, tmp_path, monkeypatch):
    from model.network.encoder import Encoder
    from model.training.loop import Trainer, build_model

    config = TrainConfig(str(similar_pairs), str(tmp_path / "run"), "scratch:L1-H32", prior="0.33", frozen=True)
    data = prepare(config)
    model, run = build_model(config, data), Run(config, data.hashes)
    recipes = []
    monkeypatch.setattr(Encoder, "fingerprint", lambda self, recipe: recipes.append(recipe) or "0" * 16)
    Trainer(model, data, config, run)
    assert recipes == []
    Trainer(model, data, replace(config, cache=str(tmp_path / "cache")), run)
    assert recipes == [""]
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_companies_are_trained_on_by_id_through_the_text_recipe(tmp_path):
    companies = [
        {"id": str(n), "description": f"{word} works", "industry": trade}
        for n, (word, trade) in enumerate([("bank", "money"), ("loan", "money"), ("ale", "beer"), ("hops", "beer")] * 6)
    ]
    (tmp_path / "c.jsonl").write_text("\n".join(json.dumps(company) for company in companies))
    rows = [f"{a}\t{b}\t{'peer' if (a // 2 + b // 2) % 2 == 0 and a % 3 else ''}" for a in range(24) for b in range(a)]
    (tmp_path / "p.tsv").write_text("left\tright\tlabel\n" + "\n".join(rows) + "\n")
    out = tmp_path / "run"
    more = ["--companies", str(tmp_path / "c.jsonl"), "--epochs", "1", "--drop_fields", "0.5"]
    assert main(arguments(tmp_path / "p.tsv", out, *more)) == 0
    assert json.loads((out / "model.json").read_text())["text_recipe"] == "{industry}. {description}"


def test_kill_9_in_the_middle_and_the_same_command_again_end_as_if_undisturbed(similar_pairs, tmp_path):
    more = ["--epochs", "15", "--checkpoint_every", "7", "--dev", "20%", "--contrastive", "1"]
    assert main(arguments(similar_pairs, tmp_path / "calm", *more)) == 0
    command = [sys.executable, "-m", "model.train", *arguments(similar_pairs, tmp_path / "killed", *more)]
    for until in (20, 60):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for_steps(tmp_path / "killed", until, process)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not (tmp_path / "killed" / "metrics.json").exists(), "the run ended before it could be killed"
    resumed = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "going on after step" in resumed.stderr
    calm, killed = history(tmp_path / "calm"), history(tmp_path / "killed")
    assert [row["step"] for row in killed] == [row["step"] for row in calm] == list(range(1, 121))
    assert [row["loss"] for row in killed] == pytest.approx([row["loss"] for row in calm], abs=1e-4)
    ends = [json.loads((tmp_path / name / "metrics.json").read_text()) for name in ("calm", "killed")]
    assert ends[0]["dev"] == pytest.approx(ends[1]["dev"], abs=1e-4)


def wait_for_steps(out: Path, steps: int, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        if (out / "history.jsonl").exists() and len((out / "history.jsonl").read_bytes().splitlines()) >= steps:
            return
        time.sleep(0.005)
    raise AssertionError(f"{steps} steps were not reached")


def test_a_finished_run_is_not_trained_again(trained, similar_pairs, capsys):
    before = (trained / "history.jsonl").stat().st_mtime_ns
    known = ["--pairs", str(similar_pairs), "--out", str(trained), "--prior", "0.33", "--contrastive", "1", *TINY]
    assert main([*known, "--epochs", "6", "--dev", "20%"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == 48
    assert (trained / "history.jsonl").stat().st_mtime_ns == before


GOOD = "left\tright\tlabel\n" + "a b\tc d\tsimilar\n" * 40 + "e f\tg h\t\n" * 60
BAD = {
    "no such file": (None, [], "no such file"),
    "empty file": ("", [], "the file is empty"),
    "no header": ("a b\tc d\tsimilar\n" * 3, [], "no column 'left'"),
    "missing column": (GOOD + "only one\n", [], "row 102: 1 columns where the header has 3"),
    "invalid UTF-8": (GOOD.encode() + b"\xff\xfe\tx\t\n", [], "row 102: not UTF-8"),
    "empty text": (GOOD + "x\t \tsimilar\n", [], "row 102: the text in column 'right' is empty"),
    "only a header": ("left\tright\tlabel\n", [], "no rows"),
    "no label at all": ("left\tright\tlabel\n" + "a\tb\t\n" * 50, [], "no row has a label"),
    "one class only": ("left\tright\tlabel\n" + "a\tb\tsame\n" * 50, [], "every row has the label 'same'"),
    "class too small": (
        GOOD + "e f\tg h\t\n" * 900 + "a\tz\trare\n",
        ["--batch_size", "32"],
        "smallest batch size that works is",
    ),
    "encoder gone": (GOOD, ["--encoder", "no/such/encoder"], "no such directory"),
    "bad scratch": (GOOD, ["--encoder", "scratch:tiny"], "scratch:L2-H128"),
    "bad recipe": (GOOD, ["--recipe", "{turnover}"], "fields are"),
    "bad prior": (GOOD, ["--prior", "1.5"], "not strictly between 0 and 1"),
    "bad epochs": (GOOD, ["--epochs", "0"], "epochs must be at least 1"),
    "bad rate": (GOOD, ["--learning_rate", "-1"], "learning_rate must be above 0"),
    "no close class": (GOOD, ["--contrastive", "1", "--close", "nobody"], "--close must name"),
    "no dev file": (GOOD, ["--dev", "nowhere.tsv"], "nowhere.tsv: no such file"),
    "no companies": (GOOD, ["--companies", "nowhere.jsonl"], "nowhere.jsonl: no such file"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_clear_line_exit_code_2_and_leaves_nothing(case, tmp_path, capsys):
    content, more, reason = BAD[case]
    if content is not None:
        (tmp_path / "p.tsv").write_bytes(content if isinstance(content, bytes) else content.encode())
    assert reason in refusal(capsys, main, "--pairs", tmp_path / "p.tsv", "--out", tmp_path / "out", *TINY, *more)
    assert not (tmp_path / "out").exists()


def test_an_encoder_directory_without_vocabulary_is_refused(tmp_path, capsys, similar_pairs, trained):
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "config.json").write_bytes((trained / "encoder" / "config.json").read_bytes())
    assert main(["--pairs", str(similar_pairs), "--out", str(tmp_path / "out"), "--encoder", str(bare)]) == 2
    assert "no vocabulary" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_directory_of_another_run_is_refused_and_left_as_it_is(trained, similar_pairs, capsys):
    before = sorted((str(path), path.stat().st_mtime_ns) for path in trained.rglob("*"))
    assert main(["--pairs", str(similar_pairs), "--out", str(trained), "--seed", "5", *TINY]) == 2
    assert "holds another run" in capsys.readouterr().err
    assert sorted((str(path), path.stat().st_mtime_ns) for path in trained.rglob("*")) == before


def test_a_directory_of_something_else_is_refused(similar_pairs, tmp_path, capsys):
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "to-mother.txt").write_text("dear")
    assert main(["--pairs", str(similar_pairs), "--out", str(tmp_path / "letters")]) == 2
    assert "holds something else" in capsys.readouterr().err
    assert os.listdir(tmp_path / "letters") == ["to-mother.txt"]


def test_a_misspelt_flag_is_refused(similar_pairs, tmp_path, capsys):
    assert "--epocs" in refusal(capsys, main, "--pairs", similar_pairs, "--out", tmp_path / "out", "--epocs", 3)


def test_mistakes_are_told_without_waiting_for_tensorflow():
    code = "import sys, model.train; model.train.main(sys.argv[1:]); assert 'tensorflow' not in sys.modules"
    subprocess.run([sys.executable, "-c", code, "--pairs", "nowhere", "--out", "x"], check=True, capture_output=True)


def test_compressed_pairs_are_read_like_plain_ones(similar_pairs, tmp_path):
    packed = tmp_path / "p.tsv.gz"
    packed.write_bytes(gzip.compress(similar_pairs.read_bytes()))
    assert main(arguments(packed, tmp_path / "run", "--epochs", "1")) == 0
