"""The whole pipeline on Beam's direct runner: files in, a LanceDB index and dead letters out."""

import subprocess
import sys
from pathlib import Path

import pytest
from bad_records import BAD
from commands import answer, refusal
from companies import DIMENSION, MODEL, OTHER_MODEL, state
from encoder import POISON, vector_of
from place import Place

from index.base import Spec
from index.open import open_index
from pipelines import encode, preflight
from pipelines.metrics.summary import Summary
from pipelines.transforms.parse import Parse

ROOT = Path(__file__).parents[2]
ENDS = ("bad", "stale", "unchanged", "indexed", "deleted", "dead")


@pytest.fixture
def place(tmp_path, encoder) -> Place:
    return Place(tmp_path, encoder.address)


def company(id, **fields):
    return {"id": str(id), "description": f"Makes {id}", **fields}


# the main way


def test_a_second_run_encodes_nothing(place, encoder):
    path = place.file(*(company(i, updated_at="2024-05-01T12:00:00Z", industry="Metal") for i in range(300)))
    assert place.run(path, "--batch_size=64") == {"encoded": 300, "indexed": 300, "read": 300}
    assert sorted(encoder.texts) == sorted(f"Metal. Makes {i}" for i in range(300))
    assert place.index.get("7").embedding == pytest.approx(vector_of("Metal. Makes 7"))
    assert place.run(path) == {"read": 300, "unchanged": 300}
    assert "; nothing encoded" in str(Summary({"read": 300, "unchanged": 300}))
    assert len(encoder.texts) == 300


def test_records_without_a_time_are_left_alone_where_they_are_the_same(place, encoder):
    path = place.file(*(company(i) for i in range(20)), {"id": "gone", "deleted": True})
    place.run(path)
    before = state(place.index)
    assert place.run(path) == {"read": 21, "unchanged": 21}
    assert (state(place.index), len(encoder.texts)) == (before, 20)


def test_a_newer_time_moves_the_version_on_unencoded(place, encoder):
    place.run(place.file(company("a", updated_at="2024-05-01T12:00:00Z")))
    assert place.run(place.file(company("a", updated_at="2024-05-03T12:00:00Z"))) == {"read": 1, "unchanged": 1}
    between = company("a", description="Old news", updated_at="2024-05-02T12:00:00Z")
    assert place.run(place.file(between)) == {"read": 1, "stale": 1}
    assert (place.index.get("a").description, len(encoder.texts)) == ("Makes a", 1)


def test_changed_fields_around_an_unchanged_text_are_updated_unencoded(place, encoder):
    place.run(place.file(company("a", sector="Old")))
    assert place.run(place.file(company("a", sector="New"))) == {"indexed": 1, "read": 1}
    found = place.index.get("a")
    assert (found.sector, len(encoder.texts)) == ("New", 1)
    assert found.embedding == pytest.approx(vector_of("Makes a"))


def test_the_newest_version_wins_whatever_the_order_and_deletes_stay(place):
    at = [f"2024-05-0{day}T00:00:00Z" for day in range(1, 6)]
    records = [
        company("a", updated_at=at[3], name="newest"),
        company("a", updated_at=at[1], name="older"),
        {"id": "b", "deleted": True, "updated_at": at[4]},
        company("b", updated_at=at[2]),
        company("c", updated_at=at[0]),
    ]
    for size in ("512", "1"):  # one batch, and a batch each
        there = Place(place.directory / size, place.flags[1])
        counts = there.run(there.file(*records), "--batch_size", size)
        assert counts.pop("encoded") >= 2
        if size == "1":  # batches are written side by side: an older version may have been there for a moment
            early = counts["indexed"] - 2
            counts |= {"indexed": 2, "stale": counts.get("stale", 0) + early}
        assert counts == {"deleted": 1, "indexed": 2, "read": 5, "stale": 2}
        assert (there.index.get("a").name, sorted(there.index.get_many("abc"))) == ("newest", ["a", "c"])


def test_formats_end_in_the_same_index(place, tmp_path):
    import gzip

    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [company(i, name=f"N{i}", updated_at="2024-05-01T12:00:00Z") for i in range(30)]
    names = list(rows[0])
    table = "\n".join([",".join(names), *(",".join(row.values()) for row in rows)])
    place.file(*rows, name="a.jsonl")
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress((tmp_path / "a.jsonl").read_bytes()))
    (tmp_path / "c.csv").write_text(table)
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "d.parquet")
    states = []
    for name in ("a.jsonl", "b.jsonl.gz", "c.csv", "d.parquet"):
        there = Place(tmp_path / name.replace(".", "_"), place.flags[1])
        assert there.run(tmp_path / name) == {"encoded": 30, "indexed": 30, "read": 30}
        states.append(state(there.index))
    assert all(each == states[0] for each in states[1:])


def test_a_pattern_reads_all_its_files_and_columns_map_names(place, tmp_path):
    (tmp_path / "1.csv").write_text("cik,text,ticker\n1,Makes one,T\n")
    (tmp_path / "2.csv").write_text("cik,text\n2,Makes two\n")
    counts = place.run(tmp_path / "?.csv", "--columns=id=cik,description=text")
    assert counts == {"encoded": 2, "indexed": 2, "read": 2, "unknown_fields": 1}
    assert place.index.get("2").description == "Makes two"


def test_what_was_indexed_by_mistake_is_put_right_by_force(place, encoder):
    path = place.file(*(company(i, sic="Metal", updated_at="2024-05-01T12:00:00Z") for i in range(45)))
    place.run(path)
    assert not place.index.get("7").industry
    right = ("--columns=industry=sic", "--force")
    assert place.run(path, *right) == {"encoded": 45, "indexed": 45, "read": 45}
    assert place.index.get("7").industry == "Metal"
    assert place.index.get("7").embedding == pytest.approx(vector_of("Metal. Makes 7"))
    assert place.run(path, *right) == {"indexed": 45, "read": 45}  # written again, but no text is encoded again
    assert place.run(path, right[0]) == {"read": 45, "unchanged": 45}
    older = place.file(company(7, updated_at="2024-04-01T12:00:00Z"), name="older.jsonl")
    assert place.run(older, "--force") == {"read": 1, "stale": 1}


# what cannot be taken in


def test_unmended_letters_come_back_as_dead_letters_of_the_same_reason(place):
    place.run(place.file(*BAD))
    first = sorted(letter["reason"] for letter in place.dead())
    pattern, place.flags[-1] = place.letters / "*.jsonl", str(place.directory / "again")
    assert place.run(pattern, kind="--replay") == {"bad": len(BAD), "read": len(BAD)}
    place.letters = place.directory / "again"
    assert len(first) == len(place.dead()) == len(BAD)
    assert [one.split(":")[0] for one in first] == sorted(letter["reason"].split(":")[0] for letter in place.dead())


def test_a_text_that_the_encoder_refuses_is_dead_alone_and_can_be_replayed(place):
    records = [company(i) for i in range(50)] + [
        company("bad", description=f"Sells {POISON}", updated_at="2024-05-01T12:00:00Z")
    ]
    assert place.run(place.file(*records)) == {"dead": 1, "encoded": 50, "indexed": 50, "read": 51}
    (letter,) = place.dead()
    assert (letter["stage"], letter["record"]["id"]) == ("encode", "bad")
    assert letter["reason"].startswith("description: ") and "cannot be encoded" in letter["reason"]
    letter["record"]["description"] = "Sells milk"
    path = place.file(letter, name="mended.jsonl")
    assert place.run(path, "--columns=id=cik", kind="--replay") == {"encoded": 1, "indexed": 1, "read": 1}
    assert place.index.known(["bad"])["bad"].version == 1714564800000000


def test_no_dead_letters_leave_no_file(place):
    place.run(place.file(company("a")))
    assert not place.letters.exists()


# before the job starts


def test_a_pattern_without_files_is_refused(place, capsys):
    said = refusal(capsys, encode.main, "--input", place.directory / "*.jsonl", *place.flags)
    assert said.endswith("*.jsonl matches no file")
    assert not Path(place.index_url).exists()


def test_a_file_that_is_not_read_is_refused(place, capsys, tmp_path):
    (tmp_path / "a.xlsx").touch()
    assert "has no ending" in refusal(capsys, encode.main, "--input", tmp_path / "a.xlsx", *place.flags)


def test_an_endpoint_that_does_not_answer_is_refused(place, encoder, capsys, monkeypatch):
    encoder.stop()
    monkeypatch.setattr(preflight, "ANSWER_SECONDS", 0.3)
    assert encoder.address in refusal(capsys, encode.main, "--input", place.file(company("a")), *place.flags)


def test_an_index_of_another_model_is_refused_with_the_command_that_moves_it(place, capsys):
    open_index(place.index_url, create=Spec(OTHER_MODEL, DIMENSION))
    said = refusal(capsys, encode.main, "--input", place.file(company("a")), *place.flags)
    assert MODEL in said and OTHER_MODEL in said and "pipelines.reindex" in said


def test_without_a_model_to_serve_the_demo_is_named(place, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    said = refusal(capsys, encode.main, "--input", place.file(company("a")))
    assert "`make demo`" in said and "--serving" in said


def test_a_flag_that_nobody_knows_is_refused(capsys):
    assert "--inptu" in refusal(capsys, encode.main, "--inptu", "x")


# the end


def test_the_command_prints_what_became_of_the_records(place, capsys):
    path = place.file(company("a"), company("b"), b"{")
    code, said, _ = answer(capsys, encode.main, "--input", path, *place.flags)
    assert code == 0
    assert said.startswith("3 read: 1 bad, 2 indexed; 2 encoded; ")
    assert f"dead letters are in {place.letters}" in said


def test_a_summary_that_does_not_add_up_fails_the_job(place, capsys, monkeypatch):
    monkeypatch.setattr(Parse, "process", lambda self, element: encode_nothing())
    code, _, said = answer(capsys, encode.main, "--input", place.file(company("a")), *place.flags)
    assert (code, said.count("\n")) == (1, 1)
    assert "unaccounted for: 1 read" in said


def encode_nothing():
    from pipelines.metrics.counters import count

    count("read")
    return []


def test_each_record_has_exactly_one_end():
    assert Summary({"read": 21} | {name: number for number, name in enumerate(ENDS, 1)}).adds_up
    assert not Summary({"read": 3, "indexed": 1, "encoded": 2}).adds_up


def test_a_worker_that_fails_is_one_line_and_exit_code_1(place, capsys, tmp_path):
    (tmp_path / "a.jsonl.gz").write_bytes(b"not compressed")
    code, _, said = answer(capsys, encode.main, "--input", tmp_path / "a.jsonl.gz", *place.flags)
    assert (code, said.count("\n")) == (1, 1), said
    assert "a.jsonl.gz cannot be read" in said


STORES = {"tensorflow", "keras", "lancedb", "elasticsearch", "pandas"}


@pytest.mark.parametrize(
    ("module", "heavy"), [("pipelines.encode", {*STORES, "apache_beam"}), ("pipelines.pipeline", STORES)]
)
def test_the_modules_are_light(module, heavy):
    script = f"import sys, {module}; print('imported', *sorted({heavy} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["imported"]
