import json
import subprocess
import sys
from pathlib import Path

import pytest
from commands import answer, refusal
from companies import DIMENSION, MODEL, OTHER_MODEL, company

from index.__main__ import main
from index.base import Spec
from index.document import Document
from index.open import open_index

ROOT = Path(__file__).parents[2]
NEW = ("--model", MODEL, "--dimension", DIMENSION)


@pytest.fixture
def url(tmp_path) -> str:
    return str(tmp_path / "index")


@pytest.fixture
def filled(url) -> str:
    # 1.6e15 microseconds are 2020-09-13
    index = open_index(url, create=Spec(MODEL, DIMENSION))
    index.write([company("a", 1_600_000_000_000_000), company("b", 1), Document.tombstone("c", 2)])
    return url


def test_create_makes_an_empty_index_and_does_nothing_the_second_time(capsys, url):
    assert answer(capsys, main, "create", "--index", url, *NEW) == (
        0,
        f"{url} (companies-{MODEL}-1) takes vectors of model {MODEL}; it holds 0\n",
        "",
    )
    open_index(url).write([company("a")])
    assert answer(capsys, main, "create", "--index", url, *NEW)[1].endswith("it holds 1\n")


def test_a_key_that_would_cross_the_network_in_the_clear_is_refused(capsys, monkeypatch):
    monkeypatch.delenv("PAUSE_ES_ALLOW_PLAIN_HTTP", raising=False)
    monkeypatch.setenv("PAUSE_ES_API_KEY", "hunter2")
    said = refusal(capsys, main, "status", "--index", "http://es.internal:9200/x")
    assert "PAUSE_ES_API_KEY would be sent to http://es.internal:9200 unencrypted" in said


def test_create_for_another_model_says_how_to_move(capsys, filled):
    said = refusal(capsys, main, "create", "--index", filled, "--model", OTHER_MODEL, "--dimension", DIMENSION)
    assert f"python -m pipelines.reindex --index {filled}" in said


def test_create_asks_the_served_model(capsys, url, monkeypatch):
    class Client:
        def __init__(self, addresses):
            assert addresses == ["one:8500", "two:8500"]

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def contract(self):
            from model.contract import Contract

            return Contract(OTHER_MODEL, 7, 128, "{description}")

    monkeypatch.setattr("serving.client.EmbeddingClient", Client)
    assert answer(capsys, main, "create", "--index", url, "--serving", "one:8500,two:8500")[0] == 0
    assert open_index(url).spec() == Spec(OTHER_MODEL, 7)


def test_status_prints_a_small_table(capsys, filled):
    code, said, _ = answer(capsys, main, "status", "--index", filled)
    lines = dict(line.split(maxsplit=1) for line in said.replace("newest ", "newest-").splitlines())
    assert code == 0
    assert (lines["companies"], lines["tombstones"]) == ("2", "1")
    assert lines["model"] == f"{MODEL}, 4 numbers a vector"
    assert lines["newest-version"] == "2020-09-13T12:26:40+00:00"


def test_status_for_machines_is_one_json_object(capsys, filled):
    known = json.loads(answer(capsys, main, "status", "--index", filled, "--json")[1])
    assert (known["live"], known["tombstones"], known["newest_version"]) == (2, 1, 1_600_000_000_000_000)
    assert (known["index"], known["model"], known["dimension"]) == (filled, MODEL, DIMENSION)


def test_status_of_versions_that_are_no_times(capsys, url):
    open_index(url, create=Spec(MODEL, DIMENSION)).write([company("a", 2**63 - 1)])
    assert "9223372036854775807" in answer(capsys, main, "status", "--index", url)[1]


def test_purge_keeps_young_tombstones(capsys, filled):
    assert answer(capsys, main, "purge", "--index", filled, "--older-than", "30d")[1].startswith("removed 0 ")
    assert answer(capsys, main, "purge", "--index", filled, "--older-than", "0s")[1].startswith("removed 1 ")
    assert open_index(filled).status().tombstones == 0


def test_drop_removes_what_a_move_left_and_says_so(capsys, filled):
    open_index(filled).successor(Spec(OTHER_MODEL, DIMENSION)).go_live()
    said = answer(capsys, main, "drop", "--former", "--index", filled)
    assert said == (
        0,
        f"removed companies-{MODEL}-1; {filled} answers from companies-{OTHER_MODEL}-2, and has none to roll back to\n",
        "",
    )
    assert [path.name for path in Path(filled).glob("*.lance")] == [f"companies-{OTHER_MODEL}-2.lance"]


@pytest.mark.parametrize("command", [["status"], ["purge", "--older-than", "1d"], ["drop", "--former"]])
def test_a_missing_index_is_one_line_and_is_not_made(capsys, url, command):
    assert refusal(capsys, main, *command, "--index", url).startswith(f"no index at {url}; ")
    assert not Path(url).exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "required: status|create|purge|drop"),
        (["drop", "--index", "x"], "required: --former"),
        (["status"], "required: --index"),
        (["status", "--index", "gopher://x"], "lance:///path"),
        (["purge", "--index", "x"], "required: --older-than"),
        (["purge", "--index", "x", "--older-than", "30"], "such as 30d"),
        (["purge", "--index", "x", "--older-than", "-1d"], "--older-than"),
        (["create", "--index", "x"], "either --serving, or --model and --dimension"),
        (["create", "--index", "x", "--model", MODEL], "either --serving, or --model and --dimension"),
        (["create", "--index", "x", *NEW, "--serving", "h:1"], "either --serving, or --model and --dimension"),
        (["create", "--index", "x", "--model", "nope", "--dimension", "4"], "'nope' is not a fingerprint"),
        (["create", "--index", "x", "--model", MODEL, "--dimension", "5000"], "from 1 to 4096"),
        (["status", "--indx", "x"], "--index"),
    ],
)
def test_a_mistake_is_answered_with_one_line(capsys, tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    assert said in refusal(capsys, main, *arguments)
    assert list(tmp_path.iterdir()) == []


def test_help_has_an_example_and_needs_no_store():
    run = subprocess.run([sys.executable, "-m", "index", "--help"], cwd=ROOT, capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")
    assert "python -m index purge --index build/index --older-than 30d" in run.stdout
