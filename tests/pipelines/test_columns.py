"""A misspelt name of --columns is told before a job starts, with the names there are."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import answer, refusal
from place import Place

from pipelines import encode, preflight
from pipelines.metrics.counters import ENOUGH, FieldNames
from pipelines.records import Columns

ROWS = [{"cik": str(number), "text": f"Makes {number}", "sic": "Metal"} for number in range(45)]
TYPO = "--columns=id=cik,description=text,industry=sicc"


@pytest.fixture
def place(tmp_path, encoder) -> Place:
    return Place(tmp_path, encoder.address)


def write(path, rows):
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
        return path
    delimiter = "\t" if ".tsv" in path.name else ","
    table = [delimiter.join(rows[0]), *(delimiter.join(row.values()) for row in rows)]
    lines = [json.dumps(row) for row in rows] if ".jsonl" in path.name else table
    content = "\n".join(lines).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize("name", ["a.csv", "a.tsv.gz", "a.parquet", "a.jsonl", "a.jsonl.gz"])
def test_a_name_that_is_not_there_is_refused_before_the_job_with_those_that_are(place, capsys, tmp_path, name):
    path = write(tmp_path / name, ROWS)
    said = refusal(capsys, encode.main, "--input", path, TYPO, *place.flags)
    assert said.startswith("--columns industry=sicc: there is no 'sicc'") and str(path) in said
    assert "cik, text, sic" in said and said.endswith("is it 'sic'?")
    assert not (tmp_path / "index").exists()
    assert place.run(path, TYPO.replace("sicc", "sic"))["indexed"] == 45


def test_a_name_may_be_in_some_of_the_files_or_of_the_records(place, tmp_path):
    write(tmp_path / "1.csv", [{"cik": "1", "text": "One"}])
    write(tmp_path / "2.csv", ROWS[2:])
    assert place.run(tmp_path / "?.csv", TYPO.replace("sicc", "sic"))["indexed"] == 44
    rare = [{"cik": "x", "text": "X"}] * (preflight.LINES - 1) + [{"cik": "y", "text": "Y", "sicc": "Metal"}]
    preflight.check_columns(Columns({"industry": "sicc"}), [str(write(tmp_path / "rare.jsonl", rare))])


def test_where_there_is_nothing_to_look_at_nothing_is_refused(tmp_path):
    columns = Columns({"industry": "sicc"})
    for name, content in {"empty.jsonl": b"", "broken.jsonl": b"{\n[1]\n", "header.csv": b"cik,text\n"}.items():
        (tmp_path / name).write_bytes(content)
        preflight.check_columns(columns, [str(tmp_path / name)])


def test_many_names_are_cut_short_and_strange_ones_can_be_printed(tmp_path):
    row = {f"column {number}": "" for number in range(300)} | {"\udce9\n": "", "y" * 500: ""}
    path = tmp_path / "a.jsonl"
    path.write_bytes(json.dumps(row).encode())
    with pytest.raises(ValueError, match="and 282 more") as refused:
        preflight.check_columns(Columns({"industry": "sicc"}), [str(path)])
    assert len(str(refused.value)) < 1000 and "\n" not in str(refused.value)


def test_dead_letters_are_not_looked_into(place):
    place.run(place.file({"id": "a"}, {"id": "b", "description": "d"}))
    (letter,) = place.dead()
    letter["record"] = {"cik": "a", "text": "Mended"}
    columns = "--columns=id=cik,description=text,industry=sicc"
    assert place.run(place.file(letter, name="mended.jsonl"), columns, kind="--replay")["indexed"] == 1


def test_where_nothing_can_be_looked_at_before_a_missing_name_is_told_once_and_in_the_summary(caplog):
    names = FieldNames(Columns({"industry": "sicc", "id": "cik"}))
    for _ in range(4):
        for number in range(ENOUGH // 2):
            names.look_at({"cik": number, "text": ""}, 1)
        names.count()
    assert [record.getMessage() for record in caplog.records] == [
        f"--columns: sicc is in none of the first {ENOUGH} records"
    ]


def test_a_name_that_no_record_had_is_in_the_summary(place, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(preflight, "check_columns", lambda columns, paths: None)  # as under --watch
    code, said, _ = answer(capsys, encode.main, "--input", write(tmp_path / "a.csv", ROWS), TYPO, *place.flags)
    assert code == 0
    assert "names of --columns that no record has: sicc\n" in said
    assert "unknown fields: sic (45)\n" in said
