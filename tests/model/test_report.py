"""Pictures of evaluations and loss curves."""

import json

import numpy as np
import pytest
from commands import answer, refusal

from model.report import Curve, main, read

PNG = b"\x89PNG\r\n\x1a\n"


def evaluation(path, model, task="sts", **scores):
    result = {"task": task, "model": model, "fingerprint": "0" * 16, "scores": scores or {"sts12": 61.2, "sts13": 80.6}}
    path.write_text(json.dumps(result | {"average": 70.9, "settings": {}, "details": {}}))
    return path


@pytest.fixture
def run(tmp_path):
    directory = tmp_path / "trained"
    directory.mkdir()
    terms = {"supervised": 0.0, "pu": 0.5, "contrastive": 0.1}
    rows = [{"step": step, "loss": 1 / step, **terms} for step in range(1, 101)]
    (directory / "history.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return directory


def test_two_evaluations_and_a_run_become_one_picture(capsys, tmp_path, run):
    first = evaluation(tmp_path / "first.json", "package:untouched")
    second = evaluation(tmp_path / "second.json", str(run))
    out = tmp_path / "report.png"
    code, stdout, _ = answer(capsys, main, first, second, run, "--out", out)
    assert (code, stdout) == (0, f"{out}\n")
    assert out.read_bytes()[:8] == PNG
    # width 11 inches at 150 dots
    assert int.from_bytes(out.read_bytes()[16:20], "big") == 1650


@pytest.mark.parametrize("count", [1, 9])
def test_one_evaluation_or_more_than_there_are_colours_become_a_picture(capsys, tmp_path, count):
    files = [evaluation(tmp_path / f"{number}.json", f"model-{number}") for number in range(count)]
    code, *_ = answer(capsys, main, *files, "--out", tmp_path / "report.png")
    assert code == 0
    assert (tmp_path / "report.png").read_bytes()[:8] == PNG


def test_a_run_alone_becomes_a_picture(capsys, tmp_path, run):
    code, *_ = answer(capsys, main, run, "--out", tmp_path / "report.svg")
    assert code == 0
    assert "<svg" in (tmp_path / "report.svg").read_text()


def test_a_trained_model_has_one_name_in_bars_and_curves(tmp_path, run):
    scores, curves = read([evaluation(tmp_path / "a.json", f"{run}/"), run])
    assert scores[0].label == curves[0].label == "trained"
    assert scores[0].scores == {"sts12": 61.2, "sts13": 80.6, "average": 70.9}


def test_models_that_end_alike_keep_their_paths(tmp_path):
    scores, _ = read([evaluation(tmp_path / "a.json", "x/best"), evaluation(tmp_path / "b.json", "y/best")])
    assert [item.label for item in scores] == ["x/best", "y/best"]


def test_a_model_measured_twice_on_a_task_is_told_apart_by_file(tmp_path):
    paths = [evaluation(tmp_path / f"{name}.json", "x/best", "companies", auc=0.8) for name in ("plain", "industry")]
    scores, _ = read([*paths, evaluation(tmp_path / "sts.json", "x/best")])
    assert [item.label for item in scores] == ["best (plain)", "best (industry)", "best"]


def test_curves_are_running_means():
    # 100 steps: the mean of the last two; 0, then (0 + 1) / 2, (1 + 2) / 2, ...
    curve = Curve("run", [{"step": step, "loss": step - 1} for step in range(1, 101)])
    steps, values = curve.term("loss")
    np.testing.assert_array_equal(steps, np.arange(1, 101))
    np.testing.assert_allclose(values[:4], [0, 0.5, 1.5, 2.5])


def test_half_a_line_at_the_end_of_a_live_run_is_left_out(run):
    with (run / "history.jsonl").open("a") as history:
        history.write('{"step": 101, "lo')
    _, [curve] = read([run])
    assert len(curve.rows) == 100


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda folder: [folder / "none.json", "--out", folder / "r.png"], "none.json: no such file or directory"),
        (lambda folder: [folder, "--out", folder / "r.png"], "no history.jsonl in it"),
        (lambda folder: [evaluation(folder / "a.json", "m"), "--out", folder / "r.gif"], "name a .png, .pdf, .svg"),
        (lambda folder: [evaluation(folder / "a.json", "m"), "--out", folder / "x" / "r.png"], "directory that exists"),
        (lambda folder: [evaluation(folder / "a.json", "m")], "the following arguments are required: --out"),
    ],
)
def test_a_mistake_is_answered_with_one_line(capsys, tmp_path, make, said):
    assert said in refusal(capsys, main, *make(tmp_path))


@pytest.mark.parametrize("content", ["[1, 2]", "{}", '{"task": "sts", "model": "m", "scores": {}}', "not json"])
def test_a_file_that_is_no_evaluation_is_refused(capsys, tmp_path, content):
    path = tmp_path / "a.json"
    path.write_text(content)
    assert refusal(capsys, main, path, "--out", tmp_path / "r.png").startswith(f"{path}: not ")
