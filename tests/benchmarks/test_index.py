import gzip
import json
from contextlib import nullcontext

import numpy as np
import pytest
from commands import refusal
from elasticsearch.helpers import expand_action

from benchmarks import index
from benchmarks.__main__ import main
from benchmarks.measures import recall
from benchmarks.peers.contestant import ContestantError
from benchmarks.targets import sinks
from benchmarks.targets.sinks import Sink, action, removed
from index.base import Outcome, Spec
from index.elastic.cluster.aliases import writes_to
from index.elastic.writing.bulk import Bulk
from model.errors import DataError

COMPANIES = [{"id": str(number), "description": f"maker of {number}", "sector": None} for number in range(30)]


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def vectors():
    return unit(np.random.default_rng(0).normal(size=(len(COMPANIES), 8))).astype(np.float32)


@pytest.fixture
def documents(vectors):
    return index.to_documents(COMPANIES, vectors)


@pytest.fixture
def sink(documents, tmp_path):
    folder = tmp_path / "lance"
    return Sink(str(folder), Spec(index.MODEL, 8), documents, removed(folder))


# the command line and its vectors


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (lambda file: None, "cannot be read"),
        (lambda file: file.write_text("not numpy"), "cannot be read"),
        (lambda file: np.save(file, np.zeros((2, 8), np.float32)), r"has shape (2, 8); a vector for each of 30 "),
    ],
)
def test_vectors_that_are_not_those_of_the_companies_are_refused_in_one_line(tmp_path, capsys, made, reason):
    path = tmp_path / "companies" / "listed.jsonl.gz"
    path.parent.mkdir()
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, COMPANIES)).encode()))
    file = tmp_path / "vectors.npy"
    made(file)
    assert f"{file} {reason}" in refusal(capsys, main, "index", "--data", tmp_path, "--vectors", file)


def test_kept_vectors_are_not_made_again(tmp_path, monkeypatch, vectors):
    monkeypatch.setattr(index, "FOLDER", tmp_path)
    monkeypatch.setattr(index, "exported", lambda: pytest.fail("nothing is to be encoded"))
    np.save(tmp_path / "vectors.npy", vectors)
    assert np.array_equal(index.encoded([company["description"] for company in COMPANIES]), vectors)


def test_kept_vectors_of_other_companies_are_refused(tmp_path, monkeypatch, vectors):
    monkeypatch.setattr(index, "FOLDER", tmp_path)
    np.save(tmp_path / "vectors.npy", vectors)
    with pytest.raises(DataError, match="a vector for each of 2 companies"):
        index.encoded(["one", "two"])


def test_the_first_companies_have_the_first_vectors(vectors):
    found = index.to_documents(COMPANIES[:3], vectors)
    assert [one.id for one in found] == ["0", "1", "2"]
    assert np.array_equal(found[2].embedding, vectors[2]) and found[2].sector == ""


# writing


def test_a_sink_fills_a_new_index_each_time(sink, documents):
    for _ in range(2):
        assert sink() > 0
        status = sink.index().status()
        assert (status.live, status.tombstones) == (len(documents), 0)


def test_a_document_that_is_not_taken_ends_the_measurement(sink, monkeypatch):
    class Refusing:
        def loading(self):
            return nullcontext()

        def write(self, batch):
            return [Outcome(one.id, "stale") for one in batch]

    monkeypatch.setattr(sinks, "open_index", lambda url, create: Refusing())
    with pytest.raises(ContestantError, match=r"did not take a document: .*stale"):
        sink()


def test_both_ways_into_elasticsearch_send_the_same_lines(documents):
    sent = []

    class Taking:
        def bulk(self, *, index, operations, **_):
            sent.extend((index, json.loads(line)) for line in operations)
            return {"items": [{"index": {"status": 201}}] * (len(operations) // 2)}

    assert len(Bulk("", Taking()).write("there", documents, 1, False, lambda: None)) == len(documents)
    theirs = [line for document in documents for line in expand_action(action("there", document))]
    for line in theirs[::2]:
        assert line["index"].pop("_index") == "there"  # ours names it once a request
    assert sent == [(writes_to("there"), line) for line in theirs]


# searching


def ring(number):
    """Unit vectors [number, 2] around a circle, each nearest to its neighbours."""
    angles = 2 * np.pi * np.arange(number) / number
    return {str(row): vector for row, vector in enumerate(np.stack([np.cos(angles), np.sin(angles)], axis=1))}


def test_recall_counts_the_nearest_that_were_found(monkeypatch):
    monkeypatch.setattr(recall, "NEAREST", 2)
    vectors = ring(12)
    assert recall.recall(vectors, {"0": ["1", "11"], "5": ["6", "4"]}) == 1.0
    assert recall.recall(vectors, {"0": ["1", "2"], "5": ["6", "4"]}) == 0.75
    assert recall.recall(vectors, {"0": [], "5": ["6", "6"]}) == 0.25  # found twice is found once
    assert recall.recall(vectors, {"0": ["0", "1"], "5": ["6", "4"]}) == 0.75  # a company is not its own neighbour


def test_whoever_ties_with_the_last_of_the_nearest_is_one_of_them(monkeypatch):
    monkeypatch.setattr(recall, "NEAREST", 3)
    vectors = ring(12)  # third and fourth of "0" are "2" and "10", equally far
    assert recall.recall(vectors, {"0": ["1", "11", "2"]}) == recall.recall(vectors, {"0": ["1", "11", "10"]}) == 1.0
    assert recall.recall(vectors, {"0": ["1", "11", "3"]}) == pytest.approx(2 / 3)


def test_a_search_that_reads_everything_finds_everything(sink, documents, monkeypatch):
    monkeypatch.setattr(recall, "WARM_UP", 3)
    sink()
    asked = []
    searched = sink.index()
    nearest = searched.nearest
    monkeypatch.setattr(searched, "nearest", lambda *words, **more: asked.append(more) or nearest(*words, **more))
    vectors = {one.id: one.embedding for one in documents}
    found = recall.measure(searched, index.MODEL, vectors, ["4", "5", "6", "7"])
    assert found.share == 1.0 and 0 < found.p50 <= found.p99
    assert [more["filters"].exclude_ids for more in asked] == [(id,) for id in "4564567"]
    assert not any(more.get("exact") for more in asked)


def test_what_is_found_is_held_against_the_bar(sink, documents, monkeypatch):
    shares = iter([0.98, 0.9799])
    monkeypatch.setattr(recall, "measure", lambda *_: recall.Recall(next(shares), 1.23, 4.56))
    sink()
    figures = [index.found(sink, documents) for _ in range(2)]
    assert [one["met"] for one in figures] == ["yes", "no"]
    assert figures[0]["unit"] == "recall@10" and (figures[0]["p50 ms"], figures[0]["p99 ms"]) == (1.2, 4.6)
