import itertools
import resource
import sys
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
from commands import refusal

from benchmarks import encode
from benchmarks.__main__ import main
from benchmarks.peers.contestant import ContestantError
from benchmarks.peers.runtimes import REQUIREMENTS
from benchmarks.targets import job, jobs
from benchmarks.targets.jobs import Input, MLTransform, Pipeline, new_directory, quarter
from index.base import Spec
from pipelines.metrics.summary import Summary

COMPANIES = [{"id": str(number), "description": "maker of things " * (number + 1)} for number in range(9)]


def python(script):
    return [sys.executable, "-c", script]


# the command line


def test_missing_companies_are_one_line_that_names_the_flag(tmp_path, capsys):
    said = refusal(capsys, main, "encode", "--data", tmp_path)
    assert "listed.jsonl.gz" in said and "--data" in said


def test_missing_peers_are_one_line_with_the_command_that_makes_them(listed, tmp_path, capsys):
    said = refusal(capsys, main, "encode", "--data", tmp_path / "data", "--peers", tmp_path / "nobody")
    assert f"uv venv --python 3.11 {tmp_path / 'nobody'} " in said


def test_the_peers_have_beam_and_the_client_of_our_own_versions():
    named = dict(line.split("==") for line in REQUIREMENTS.read_text().splitlines())
    setup = (REQUIREMENTS.parents[2] / "setup.py").read_text()
    assert f'"apache-beam[gcp]=={named["apache-beam"]}"' in setup
    assert f'"elasticsearch=={named["elasticsearch"]}"' in setup


# what is encoded


def test_every_run_draws_the_same_companies_and_no_text_twice(listed):
    drawn = encode.draw(listed, 12)
    assert drawn == encode.draw(listed, 12)
    assert len({company["description"] for company in drawn}) == 12
    assert len(encode.draw(listed, 50)) == 29


def test_a_quarter_of_the_companies_has_a_quarter_of_the_letters():
    companies = [{"id": str(number), "description": "x" * (number * 37 % 101 + 1)} for number in range(100)]
    assert len({len(company["description"]) for company in companies}) == 100
    some = quarter(companies)
    letters = [sum(len(company["description"]) for company in each) for each in (some, companies)]
    assert len(some) == 25
    assert letters[0] / letters[1] == pytest.approx(0.25, rel=0.02)


# one command


def test_a_command_is_measured_by_its_own_word_by_the_clock_and_by_its_memory(tmp_path):
    script = "held = b'x' * 200_000_000; print('5 read: 5 indexed; 5 encoded; 1.5 s; index here'); print('and more')"
    run = job.run(python(script), tmp_path / "log", "5 indexed")
    assert run.said == "5 read: 5 indexed; 5 encoded; 1.5 s; index here"
    assert run.seconds == 1.5 != run.wall > 0
    assert 200 < run.peak < 260  # MB


def test_the_memory_of_who_measures_is_not_the_commands(tmp_path):
    held = b"x" * 300_000_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 > len(held)
    run = job.run(python("print('; 0.1 s; index here')"), tmp_path / "log", "")
    assert 1 < run.peak < 100  # MB


def test_a_command_that_fails_is_named_with_its_last_words(tmp_path):
    with pytest.raises(ContestantError, match=r"ended with 3: no server there \(.*log has the rest\)"):
        job.run(python("import sys; print('no server there', file=sys.stderr); sys.exit(3)"), tmp_path / "log", "")


@pytest.mark.parametrize("said", ["4 indexed; 1.0 s; index here", "5 indexed", ""])
def test_a_command_that_did_something_else_is_not_measured(tmp_path, said):
    with pytest.raises(ContestantError, match="should say '5 indexed'"):
        job.run(python(f"print({said!r})"), tmp_path / "log", "5 indexed")


# jobs


def test_the_pipeline_is_run_into_a_new_index_again_and_with_a_quarter_into_another(tmp_path, monkeypatch):
    whole, few = (Input.write(tmp_path / f"{len(some)}.jsonl", some) for some in (COMPANIES, quarter(COMPANIES)))
    ends = iter(
        [
            {"read": 9, "indexed": 9, "encoded": 9},
            {"read": 9, "unchanged": 9},
            {"read": 2, "indexed": 2, "encoded": 2},
        ]
    )
    seen = []

    def run(command, log, expected):
        assert expected in f"{Summary(next(ends))}; 1.0 s; index there"  # the pipeline's own words
        flags = dict(zip(command[4::2], command[5::2], strict=True))
        seen.append((flags["--input"], flags["--serving"], flags["--index"]))
        return job.Run("", 10.0 + len(seen), 20.0, 300.0)

    monkeypatch.setattr(jobs, "run", run)
    opened = itertools.count(1)
    pipeline = Pipeline("h:1", whole, few, lambda: new_directory(tmp_path / f"index-{next(opened)}"), tmp_path)
    assert pipeline() == 11.0
    every, some, first, second = (str(tmp_path / name) for name in ("9.jsonl", "2.jsonl", "index-1", "index-2"))
    assert seen == [(every, "h:1", first), (every, "h:1", first), (some, "h:1", second)]
    taken = [[one.seconds for one in runs] for runs in (pipeline.first, pipeline.again, pipeline.quarters)]
    assert taken == [[11.0], [12.0], [13.0]]


def test_a_new_directory_is_empty_and_goes_afterwards(tmp_path):
    path = tmp_path / "index"
    for _ in range(2):
        with new_directory(path) as index:
            assert index == str(path) and not path.exists()
            path.mkdir()
            (path / "left").touch()
        assert not path.exists()


def test_beams_own_is_given_the_same_file_and_model_and_looked_at_before_its_index_goes(tmp_path, monkeypatch):
    steps, commands = [], []

    class PretendedCluster:
        address = "http://nowhere:1"

        def create(self, name, spec):
            steps.append(("create", name, spec.dimension))

        @contextmanager
        def new(self, name):
            yield ""
            steps.append(("drop", name))

    def run(command, log, expected):
        commands.append(command)
        assert expected == "9 indexed"
        return SimpleNamespace(seconds=4.0)

    monkeypatch.setattr(jobs, "run", run)
    beam = MLTransform("python", tmp_path / "model", PretendedCluster(), Spec("0" * 16, 8), tmp_path)
    whole = Input.write(tmp_path / "companies.jsonl", COMPANIES)
    assert beam(whole, 512, lambda index: steps.append(("look", index))) == 4.0
    assert steps == [("create", "ml-transform", 8), ("look", "ml-transform"), ("drop", "ml-transform")]
    words = [tmp_path / "companies.jsonl", "http://nowhere:1", "ml-transform", tmp_path / "model", 128, 512]
    assert commands == [["python", "-m", "benchmarks.peers.ml_transform", *map(str, words)]]


# the table


def runs(*figures):
    return [job.Run("", seconds, wall, peak) for seconds, wall, peak in figures]


def test_ratios_are_those_of_rates_of_times_and_of_memory():
    pipeline = SimpleNamespace(
        first=runs((100, 104, 300), (50, 52, 330)), again=runs((4, 8, 200)) * 2, quarters=runs((25, 29, 300)) * 2
    )
    seconds = {
        encode.LANCE: np.array([100, 50]),
        encode.ELASTIC: np.array([125, 80]),
        encode.COARSE: np.array([100, 100]),
        encode.ENCODER: np.array([90, 60]),
        encode.BEAM: np.array([150, 120]),
        encode.TUNED: np.array([100, 100]),
    }
    result = encode.ratios(1000, seconds, {encode.LANCE: pipeline})
    found = {name: (figures["ratio"], figures.get("met")) for name, figures in result.items()}
    assert found == {
        f"{encode.LANCE} / {encode.ENCODER}": (1.05, "yes"),  # 90/100, 60/50
        f"{encode.ELASTIC} / {encode.ENCODER}": (0.735, "no"),  # 90/125, 60/80
        f"{encode.ELASTIC} / {encode.BEAM}": (1.35, "yes"),  # 150/125, 120/80
        f"{encode.COARSE} / {encode.BEAM}": (1.35, "yes"),  # 150/100, 120/100
        f"{encode.ELASTIC} / {encode.TUNED}": (1.025, None),  # 100/125, 100/80
        f"{encode.LANCE}, start and imports too / {encode.ENCODER}": (1.01, None),  # 90/104, 60/52
        f"{encode.LANCE}, first run / nothing changed": (18.75, "no"),  # 100/4, 50/4
        f"{encode.LANCE}, time of all / of a quarter": (3.0, "yes"),  # 100/25, 50/25
        f"{encode.LANCE}, memory of all / of a quarter": (1.05, "yes"),  # 300/300, 330/300
    }
