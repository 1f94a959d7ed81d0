import itertools
import json
import re
import shutil
import sys
from typing import ClassVar

import numpy as np
import pytest
from commands import refusal

from benchmarks import serving
from benchmarks.__main__ import main, table
from benchmarks.measures import cold_start, senders
from benchmarks.measures.rounds import alternate, row
from benchmarks.peers.contestant import Contestant, ContestantError
from benchmarks.peers.runtimes import REQUIREMENTS
from benchmarks.targets.server import Server
from model.export import EXTRA, FACTS
from serving.client import EmbeddingClient
from serving.embedded import ServerSilent

TEXTS = [f"bank loans credit {'savings ' * number}" for number in range(40)]


class Recorder:
    """Stands in for the client: takes down what is sent, and by whom."""

    made: ClassVar[list["Recorder"]] = []

    def __init__(self, addresses):
        self.sent = []
        self.made.append(self)

    def contract(self):
        self.sent.append("contract")

    def embed(self, texts):
        self.sent.append(list(texts))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


@pytest.fixture
def recorders(monkeypatch):
    monkeypatch.setattr(Recorder, "made", [])
    monkeypatch.setattr(senders, "EmbeddingClient", Recorder)
    monkeypatch.setattr(cold_start, "EmbeddingClient", Recorder)
    return Recorder.made


@pytest.fixture(scope="module")
def version(trained, tmp_path_factory):
    from model.export import export
    from model.network.saved import open_model

    return export(open_model(str(trained)), tmp_path_factory.mktemp("exported") / "pause", {})


@pytest.fixture(scope="module")
def base(version, tmp_path_factory):
    path = tmp_path_factory.mktemp("served") / "pause"
    shutil.copytree(version, path / "1")
    return path


@pytest.fixture(scope="module")
def server(base):
    with Server(base) as running:
        yield running


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(serving, "FOLDER", tmp_path / "serving")
    return tmp_path / "serving"


# the command line


def test_missing_descriptions_are_one_line_that_names_the_flag(tmp_path, capsys):
    said = refusal(capsys, main, "serving", "--data", tmp_path)
    assert "listed.jsonl.gz" in said and "--data" in said


def test_missing_peers_are_one_line_with_the_command_that_makes_them(listed, tmp_path, capsys):
    said = refusal(capsys, main, "serving", "--data", tmp_path / "data", "--peers", tmp_path / "nobody")
    assert f"uv venv --python 3.11 {tmp_path / 'nobody'} " in said
    assert f"--requirement {REQUIREMENTS}" in said and "--peers" in said


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["serving", "--rounds", "0"], "--rounds: a number of at least 1"),
        (["serving", "--texts", "many"], "--texts: a number of at least 1"),
        (["train", "--peers", "folder"], "--peers folder"),
        ([], "NAME"),
    ],
)
def test_flags_that_make_no_sense_are_refused(capsys, words, reason):
    assert reason in refusal(capsys, main, *words)


def test_every_package_of_the_peers_is_pinned():
    lines = REQUIREMENTS.read_text().splitlines()
    assert [line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.]+", line)] == []
    named = {line.split("==")[0] for line in lines}
    assert {"torch", "sentence-transformers", "onnxruntime", "onnx", "onnxscript"} <= named


def test_more_cases_than_figures_go_down_the_page():
    lines = table({"a": {"ratio": 1.5}, "b": {"ratio": 2}}).splitlines()
    assert [line.split() for line in lines] == [["ratio"], ["a", "1.5"], ["b", "2"]]


def test_every_run_draws_the_same_texts_and_none_twice(listed):
    drawn = serving.draw(listed, 12)
    assert drawn == serving.draw(listed, 12) and len(set(drawn)) == 12
    assert drawn != sorted(drawn)
    assert len(serving.draw(listed, 50)) == 29


# rounds


def test_every_other_round_is_in_reverse():
    order, figures = [], itertools.count()
    contestants = {name: lambda name=name: order.append(name) or float(next(figures)) for name in "ab"}
    given = alternate(contestants, 3)
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert given["a"].tolist() == [0, 3, 4] and given["b"].tolist() == [1, 2, 5]


def test_a_ratio_is_the_median_of_those_within_a_round():
    # 10/20, 30/20, 40/50: the median is 0.8, where that of the medians would be 30/20
    figures = row("texts/s", [10, 30, 40], [20, 20, 50], least=0.8)
    assert figures == {
        **{"ours": 30.0, "theirs": 20.0, "unit": "texts/s", "ratio": 0.8, "from": 0.5, "to": 1.5},
        **{"bar": ">= 0.8", "met": "yes"},
    }


@pytest.mark.parametrize(
    ("bars", "met"), [({"least": 1.1}, "no"), ({"most": 1.1}, "yes"), ({"most": 0.9}, "no"), ({}, None)]
)
def test_a_bar_is_met_on_its_own_side(bars, met):
    assert row("ms", [5.0], [5.0], **bars).get("met") == met


# contestants


def child(script):
    return [sys.executable, "-c", script]


ECHO = """
import sys, numpy as np
from pathlib import Path
from benchmarks.peers.contestant import read_texts, take_part
def encode(texts, batch_size):
    print("chatter of encoding")
    return np.array([[len(text), batch_size] for text in texts], np.float32)
def load():
    print("chatter of loading")
    return encode
take_part(load, read_texts(sys.argv[1]), Path(sys.argv[2]))
"""


def test_a_contestant_encodes_the_texts_whenever_it_is_told_to_whatever_else_it_prints(tmp_path):
    texts = tmp_path / "texts.json"
    texts.write_text(json.dumps(["a", "bcd"]))
    with Contestant(child(ECHO), texts, tmp_path / "echo.log") as contestant:
        assert 0 < contestant.run(8) < 5 and contestant.vectors().tolist() == [[1, 8], [3, 8]]
        assert 0 < contestant.run(16) < 5 and contestant.vectors().tolist() == [[1, 16], [3, 16]]
    assert (tmp_path / "echo.log").read_text().splitlines() == ["chatter of loading", *["chatter of encoding"] * 2]


def test_a_contestant_that_fails_is_named_with_its_last_words(tmp_path):
    with pytest.raises(ContestantError, match=r"ended early: no torch here \(.*lost.log has the rest\)"):
        Contestant(child("import sys; sys.exit('no torch here')"), tmp_path / "texts.json", tmp_path / "lost.log")


def test_other_vectors_than_the_servers_are_not_measured():
    same = np.eye(40, dtype=np.float32)
    serving.check_agreement("torch", same, same)
    two_differ, three_differ = same.copy(), same.copy()
    two_differ[:2], three_differ[:3] = same[2], same[3]  # 38 of 40 are the 95 % that is asked for
    serving.check_agreement("torch", same, two_differ)
    with pytest.raises(ContestantError, match=r"torch makes .* of 92% of the texts only"):
        serving.check_agreement("torch", same, three_differ)


# senders


@pytest.mark.parametrize(
    ("name", "sizes", "clients"),
    [
        (senders.ALL_AT_ONCE, [40], 1),
        (senders.SIDE_BY_SIDE, [32, 8], 1),
        (senders.IN_TURN, [32, 8], 1),
        (senders.SIXTEENS, [16, 16, 8], 1),
        (senders.SINGLES, [1] * 40, 16),
    ],
)
def test_every_way_of_sending_sends_each_text_once(recorders, name, sizes, clients):
    with senders.senders("nowhere:1", TEXTS) as ways:
        assert all(recorder.sent == ["contract"] for recorder in recorders)  # connected before the clock runs
        assert ways[name]() > 0
    sent = [batch for recorder in recorders for batch in recorder.sent[1:]]
    assert sorted(map(len, sent), reverse=True) == sizes
    assert sorted(itertools.chain(*sent)) == sorted(TEXTS)
    assert len(recorders) == 16 and sum(len(recorder.sent) > 1 for recorder in recorders) <= clients


# the server


def test_a_server_without_a_version_is_reported_in_its_own_words(tmp_path):
    with pytest.raises(ServerSilent, match="holds no version"):
        Server(tmp_path)


def test_requests_before_things_have_settled_are_neither_first_nor_later(monkeypatch):
    clock = iter(range(0, 1000, 10))  # seconds; settling begins at 0 and ends at 20, which the third look sees
    monkeypatch.setattr(cold_start.time, "monotonic", lambda: next(clock))
    took = iter([0.3, *[0.1, 0.2, 0.5] * 5])
    monkeypatch.setattr(cold_start, "seconds", lambda work: work() or next(took))
    client = Recorder([])
    assert cold_start.first_and_later(client, ["a"]) == pytest.approx((300, 200))  # ms
    assert len(client.sent) == 1 + 1 + cold_start.LATER  # one was sent to settle


def test_every_size_is_the_first_after_every_kind_of_load(recorders, tmp_path, monkeypatch):
    class PretendedServer(Recorder):
        def swap(self):
            recorders[-1].sent.append("swap")

    PretendedServer.address = "nowhere:1"
    monkeypatch.setattr(cold_start, "Server", PretendedServer)
    monkeypatch.setattr(cold_start, "SETTLE_SECONDS", 0.0)
    (tmp_path / "1").mkdir()
    found = cold_start.measure(tmp_path / "1", TEXTS, rounds=1, folder=tmp_path)
    assert {title: len(pairs) for title, pairs in found.items()} == {
        "first request after a start, 1 text": 1,
        "first request after a start, 32 texts": 1,
        "first request after a swap, 1 text": 1,
        "first request after a swap, 32 texts": 1,
    }
    clients = [recorder for recorder in recorders if recorder.sent]
    sizes = [[one if isinstance(one, str) else len(one) for one in client.sent] for client in clients]
    assert [[*dict.fromkeys(sent)] for sent in sizes] == [["contract", 1, "swap", 32], ["contract", 32, "swap", 1]]
    assert clients[0].sent[1] != clients[1].sent[-1]  # another text each time


def test_all_that_take_part_are_compared_on_a_real_server(server, version, trained, folder):
    command = [sys.executable, "-m", "benchmarks.peers.in_process"]
    tokens = json.loads((version / EXTRA / FACTS).read_text())["contract"]["max_tokens"]
    others = {
        serving.ENCODER: [*command, "encoder", str(trained), str(tokens)],
        serving.COMPILED: [*command, "compiled", str(version), str(tokens)],
    }
    result = serving.throughput(server.address, TEXTS, others, rounds=1)
    ways = (senders.ALL_AT_ONCE, senders.SIDE_BY_SIDE, senders.IN_TURN)
    assert [*result] == [  # and nobody is compared with peers that are not there
        *(f"{way} / {serving.ENCODER}" for way in ways),
        *(f"{way} / {serving.COMPILED}" for way in ways),
        f"{senders.SINGLES} / {senders.SIXTEENS}",
    ]
    assert {figures["bar"] for figures in result.values()} == {">= 0.95", ">= 0.8"}
    assert all(figures["ours"] > 0 and figures["theirs"] > 0 for figures in result.values())


def test_after_a_swap_the_next_version_answers(server, base):
    with EmbeddingClient([server.address]) as client:
        before, _ = client.embed(TEXTS[:2])
        server.swap()
        assert sorted(path.name for path in base.iterdir()) == ["1", "2"]
        shutil.rmtree(base / "1")  # what is no longer served is not missed
        after, _ = client.embed(TEXTS[:2])
    np.testing.assert_allclose(before, after, atol=1e-6)
