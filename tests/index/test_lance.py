"""What only the embedded index promises: to processes that die or write together, and as it grows."""

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from companies import DIMENSION, MODEL, company, found, state, statuses

from index.base import Spec
from index.document import Document, Filters
from index.errors import IndexMissing, IndexUnusable
from index.lance import maintenance
from index.open import open_index

ROOT = Path(__file__).parents[2]
SPEC = Spec(MODEL, DIMENSION)
# Writes fifty companies again and again, each time a version on, and says so; with "new", others each round.
WRITER = """
import sys
sys.path.insert(0, "tests")
from companies import MODEL, DIMENSION, company
from index.base import Spec
from index.open import open_index
url, first, end, ids = sys.argv[1:]
index = open_index(url, create=Spec(MODEL, DIMENSION))
print("ready", flush=True)
sys.stdin.readline()
for version in range(int(first), int(end), 2):
    round = version // 2 if ids == "new" else 0
    outcomes = index.write([company(f"{round}-{number}", version) for number in range(50)])
    print(version, *{outcome.status for outcome in outcomes}, flush=True)
"""


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "index"


@pytest.fixture
def index(path):
    return open_index(str(path), create=SPEC)


def writer(path, first, end, ids):
    command = [sys.executable, "-c", WRITER, str(path), str(first), str(end), ids]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    return subprocess.Popen(command, cwd=ROOT, text=True, **pipes)


def start(*processes):
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()


def files(path):
    return {file for file in path.rglob("*") if file.is_file()}


def fragments(path):
    return len(list(path.glob("*.lance/data/*.lance")))


# addresses


def test_a_path_and_its_url_are_the_same_index(index, path):
    index.write([company("a")])
    assert open_index(f"lance://{path}").get("a").version == 1


@pytest.mark.parametrize("url", ["", "lance://relative/path", "s3://bucket/index", "lance://", "://x"])
def test_an_address_of_no_kind_is_refused_with_those_accepted(url):
    with pytest.raises(IndexUnusable, match="lance:///path/to/directory"):
        open_index(url)


def test_a_file_and_a_directory_without_an_index_are_refused_and_left_alone(tmp_path):
    file = tmp_path / "file"
    file.touch()
    for create in (None, SPEC):
        with pytest.raises(IndexUnusable, match="file"):
            open_index(str(file), create=create)
    for missing in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(IndexMissing):
            open_index(str(missing))
    assert list(tmp_path.iterdir()) == [file]


def test_what_a_dead_process_left_half_made_is_completed(path):
    (path / f"companies-{MODEL}-1.lance" / "data").mkdir(parents=True)
    with pytest.raises(IndexMissing):
        open_index(str(path))
    index = open_index(str(path), create=SPEC)
    assert statuses(index.write([company("a")])) == ["indexed"]
    assert index.status().physical == f"companies-{MODEL}-1"


def test_rollback_passes_over_a_successor_that_never_went_live(index):
    index.write([company("a")])
    index.successor(Spec("a" * 16, 3))
    index.successor(Spec("b" * 16, 3)).go_live()
    assert index.rollback() == f"companies-{MODEL}-1"


# others at work


def test_a_writer_killed_leaves_whole_writes_and_no_lock(path):
    with writer(path, 1, 10**9, "same") as process:
        start(process)
        seen = [process.stdout.readline().split() for _ in range(3)]
        os.kill(process.pid, signal.SIGKILL)
        last = [line.split() for line in process.stdout][-1:] or seen[-1:]
    assert seen == [["1", "indexed"], ["3", "indexed"], ["5", "indexed"]]
    index = open_index(str(path))
    versions = [one.version for batch in index.scan() for one in batch]
    assert len(versions) == 50 and len(set(versions)) == 1  # one write is one state
    assert versions[0] >= int(last[0][0])  # what was said to be written is there
    assert statuses(index.write([company("0-0", 10**9)])) == ["indexed"]


def test_two_processes_that_insert_the_same_ids_leave_each_once_and_the_newest(index, path):
    with writer(path, 0, 24, "new") as even, writer(path, 1, 24, "new") as odd:
        start(even, odd)
        assert (even.wait(60), odd.wait(60)) == (0, 0)
    kept = state(index)  # asserts that nothing is there twice
    assert len(kept) == 12 * 50
    assert {id.split("-")[0]: one.version for id, (one, _) in kept.items()} == {str(n): 2 * n + 1 for n in range(12)}


def test_threads_that_share_an_index_write_each_id_once(index):
    def write(turn):
        return statuses(index.write([company(str(number), 1) for number in range(30)]))

    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(write, range(8)))
    assert sorted(map(set, outcomes), key=min) == [{"indexed"}] + [{"stale"}] * 7
    assert len(state(index)) == 30


def test_a_reader_sees_what_another_wrote_at_once(index, path):
    reader = open_index(str(path))
    assert reader.known(["a"]) == {}
    index.write([company("a")])
    assert list(reader.known(["a"])) == ["a"]


# maintenance


def test_many_small_writes_are_merged_on_the_way(index, path, monkeypatch):
    monkeypatch.setattr(maintenance, "FILES", 5)
    monkeypatch.setattr(maintenance, "KEPT", timedelta(milliseconds=1))
    for number in range(20):
        index.write([company(str(number))])
    assert fragments(path) <= 6
    assert len(state(index)) == 20


def test_many_rows_apart_from_the_indices_join_them_on_the_way_but_not_in_a_load(index, monkeypatch):
    def apart():
        return {one.num_unindexed_rows for one in index._table().list_indices()}

    monkeypatch.setattr(maintenance, "ROWS_APART", 10)
    index.write([company(str(number)) for number in range(10)])
    assert apart() == {10}
    index.write([company("one more")])
    assert apart() == {0}
    with index.loading():
        index.write([company(f"loaded {number}") for number in range(11)])
        assert apart() == {11}
    assert apart() == {0}


def test_files_of_older_states_go_but_not_under_a_scan(index, path, monkeypatch):
    monkeypatch.setattr(maintenance, "KEPT", timedelta(milliseconds=1))
    for number in range(6):
        index.write([company(str(number))])
    scan = index.scan(batch_size=1)
    next(scan)
    before = files(path)
    index.optimise()
    assert before <= files(path)
    assert len(list(scan)) == 5
    index.optimise()
    assert not before <= files(path) and fragments(path) == 1


@pytest.fixture
def grown(path, monkeypatch):
    """An index of 1,500 random vectors of 16 numbers, in a house where 1,000 are many."""
    monkeypatch.setattr(maintenance, "EXACT_BELOW", 1000)
    monkeypatch.setattr(maintenance, "ROWS_PER_LIST", 50)
    index = open_index(str(path), create=Spec(MODEL, 16))
    write_random(index, range(1500))
    return index


def write_random(index, numbers, version=1):
    generator = np.random.default_rng(numbers[0] + version)
    vectors = generator.normal(size=(len(numbers), 16))
    index.write(
        [
            company(str(number), version, embedding, sector=f"s{number % 40}")
            for number, embedding in zip(numbers, vectors, strict=True)
        ]
    )
    return vectors.astype(np.float32)


def recall(index, filters):
    hits = asked = 0
    for query in np.random.default_rng(9).normal(size=(40, 16)).astype(np.float32):
        exact = found(index.nearest(query, 10, model=MODEL, filters=filters, exact=True))
        approximate = found(index.nearest(query, 10, model=MODEL, filters=filters))
        assert len(exact) == len(approximate) == 10
        hits, asked = hits + len({*exact} & {*approximate}), asked + 10
    return hits / asked


def test_few_vectors_are_searched_exactly_and_many_by_an_index(grown):
    assert grown.status().vectors == "exact"
    grown.optimise()
    assert grown.status().vectors == "approximate, IVF_SQ of 30 lists"
    assert recall(grown, Filters()) >= 0.98
    assert recall(grown, Filters(sector=("s1",))) >= 0.98  # 37 or 38 companies over all lists


def test_scores_through_the_vector_index_are_cosines_still(grown):
    grown.optimise()
    query = np.random.default_rng(1).normal(size=16).astype(np.float32)
    exact, approximate = (grown.nearest(query, 5, model=MODEL, exact=exact) for exact in (True, False))
    assert [hit.score for hit in approximate] == pytest.approx([hit.score for hit in exact], abs=1e-6)


def test_what_is_written_after_the_vector_index_was_built_is_found(grown):
    grown.optimise()
    new, changed = write_random(grown, range(2000, 2001)), write_random(grown, range(3, 4), version=2)
    grown.write([Document.tombstone("4", 2)])
    assert found(grown.nearest(new[0], 1, model=MODEL)) == ["2000"]
    assert found(grown.nearest(changed[0], 1, model=MODEL)) == ["3"]
    assert "4" not in found(grown.nearest(grown.get("5").embedding, 1500, model=MODEL))


def test_a_vector_index_is_built_anew_when_the_companies_are_four_times_as_many(grown):
    grown.optimise()
    write_random(grown, range(1500, 5900))
    grown.optimise()
    assert grown.status().vectors == "approximate, IVF_SQ of 30 lists"
    write_random(grown, range(5900, 6000))
    grown.optimise()
    assert grown.status().vectors == "approximate, IVF_SQ of 120 lists"
    assert recall(grown, Filters()) >= 0.98


def test_the_status_counts_files_while_a_writer_s_come_and_go(index):
    index.write([company("a")])
    data = Path(index.url) / f"{index.status().physical}.lance" / "data"
    assert data.is_dir()
    over = threading.Event()

    def come_and_go():
        while not over.is_set():
            files = [data / f".tmp{number}" for number in range(50)]
            for file in files:
                file.write_bytes(b"x")
            for file in files:
                file.unlink()

    with ThreadPoolExecutor(1) as pool:
        busy = pool.submit(come_and_go)
        try:
            assert {index.status().live for _ in range(200)} == {1}
        finally:
            over.set()
        busy.result()
