"""Every record of a file once, wherever it is cut; what is no record says so; what is no file raises."""

import csv
import gzip
import json
import random
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.io import files
from pipelines.io.files import END, format_of, parts, read
from pipelines.records import SAME_NAMES, Columns, FileUnreadable


def all_of(path, columns=SAME_NAMES):
    return [
        raw for start, stop in parts(str(path), path.stat().st_size) for raw in read(str(path), start, stop, columns)
    ]


def records(path, columns=SAME_NAMES):
    return [raw.record for raw in all_of(path, columns)]


# JSON lines


def test_every_line_is_read_once_wherever_the_file_is_cut(tmp_path, monkeypatch):
    generator = random.Random(4)
    lines = [b'{"id": "%d", "x": "%s"}' % (i, b"y" * generator.randrange(90)) for i in range(200)]
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join(lines))  # no line end after the last
    for size in (5, 64, 101, 5000):
        monkeypatch.setattr(files, "PART_BYTES", size)
        assert len(parts(str(path), path.stat().st_size)) == -(-path.stat().st_size // size)
        assert records(path) == lines


def test_a_record_says_at_which_byte_it_begins(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"id": 1}\r\n\n  \n{"id": 2}\n')
    assert [raw.record for raw in all_of(path)] == [b'{"id": 1}', b'{"id": 2}']
    assert [raw.source for raw in all_of(path)] == [f"{path}, byte 0", f"{path}, byte 15"]


def test_a_line_beyond_the_limit_is_a_fault_and_the_next_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MAX_RECORD_BYTES", 100)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"x" * 350 + b"\n" + b'{"id": 1}\n' + b"y" * 99 + b"\n" + b"z" * 100)
    found = all_of(path)
    assert [bool(one.fault) for one in found] == [True, False, False, True]
    assert "351 bytes" in found[0].fault
    assert found[1].source.endswith("byte 351")


def test_compressed_lines_are_one_part(tmp_path):
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"id": 1}\n{"id": 2}'))
    assert parts(str(path), 10**10) == [(0, END)]
    assert records(path) == [b'{"id": 1}', b'{"id": 2}']


def test_a_compressed_file_that_was_cut_off_raises(tmp_path):
    whole = gzip.compress(b"".join(b'{"id": "%d"}\n' % random.getrandbits(64) for _ in range(1000)))
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FileUnreadable, match=r"a.jsonl.gz cannot be read"):
        records(path)


def test_what_is_not_compressed_though_named_so_raises(tmp_path):
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(b'{"id": 1}')
    with pytest.raises(FileUnreadable, match="cannot be read"):
        records(path)


def test_an_empty_file_has_no_records(tmp_path):
    for name in ("a.jsonl", "a.csv"):
        (tmp_path / name).touch()
        assert records(tmp_path / name) == []


# CSV


def test_quoted_line_ends_quotes_and_commas_belong_to_the_value(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b'\xef\xbb\xbfid,description\r\n1,"two\nlines, and ""quotes"""\r\n\r\n2,plain\r\n')
    assert records(path) == [
        {"id": "1", "description": 'two\nlines, and "quotes"'},
        {"id": "2", "description": "plain"},
    ]
    assert [raw.source for raw in all_of(path)] == [f"{path}, line 2", f"{path}, line 5"]


def test_a_row_of_another_width_is_a_fault_that_no_replay_takes_unmended(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,description\n1,a, b\n2,c\n3\n")
    found = all_of(path)
    assert [bool(one.fault) for one in found] == [True, False, True]
    assert "3 columns; the header has 2" in found[0].fault
    assert isinstance(found[0].record, bytes)


def test_broken_utf8_in_a_row_stays_in_its_field(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"id,description\n1,caf\xe9\n")
    assert records(path) == [{"id": "1", "description": "caf\udce9"}]


def test_long_values_and_tabs_and_gz(tmp_path):
    path = tmp_path / "a.tsv.gz"
    path.write_bytes(gzip.compress(b"id\tdescription\n1\t" + b"d" * 300_000))
    assert records(path) == [{"id": "1", "description": "d" * 300_000}]


@pytest.fixture
def csv_limit():
    """The limit is the whole process', so that other tests would meet what one of them has set."""
    limit = csv.field_size_limit()
    yield
    csv.field_size_limit(limit)


@pytest.mark.usefixtures("csv_limit")
def test_a_quote_that_never_ends_is_a_fault(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MAX_RECORD_BYTES", 1000)
    path = tmp_path / "a.csv"
    path.write_text('id,description\n1,a\n2,"never\n' + "3,b\n" * 500)
    found = all_of(path)
    assert found[0].record == {"id": "1", "description": "a"}
    assert "not a row of CSV" in found[1].fault


# Parquet


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "a.parquet"
    times = pa.array([datetime(2024, 5, 1, tzinfo=UTC)] * 100, pa.timestamp("ns", "UTC"))
    columns = {
        "cik": list(range(100)),
        "text": ["d"] * 100,
        "updated_at": times,
        "tags": [["x"]] * 100,
        "other": [0] * 100,
    }
    pq.write_table(pa.table(columns), path, row_group_size=10)
    return path


def test_every_row_is_read_once_wherever_the_file_is_cut(table, monkeypatch):
    columns = Columns({"id": "cik", "description": "text"})
    for size in (50, 333, 10_000_000):
        monkeypatch.setattr(files, "PART_BYTES", size)
        found = all_of(table, columns)
        assert [one.record["cik"] for one in found] == list(range(100))
        assert [one.source for one in found] == [f"{table}, row {row}" for row in range(100)]


def test_rows_have_the_values_that_are_asked_for(table):
    row = records(table, Columns({"id": "cik", "description": "text"}))[0]
    assert row["updated_at"] == datetime(2024, 5, 1, tzinfo=UTC)
    assert (row["text"], row["tags"], row["other"]) == ("d", ["x"], None)  # a name that is counted, not read


def test_what_is_no_parquet_raises(tmp_path):
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1 no, it is not")
    with pytest.raises(FileUnreadable, match=r"a.parquet cannot be read"):
        records(path)


# names


@pytest.mark.parametrize(
    ("name", "format"),
    [("a.JSONL", "jsonl"), ("gs://b/a.ndjson.gz", "jsonl"), ("a.csv.gz", "csv"), ("a.tsv", "tsv"), ("a.pq", "parquet")],
)
def test_the_ending_tells_the_format(name, format):
    assert format_of(name) == format


@pytest.mark.parametrize("name", ["a.txt", "a", "a.parquet.gz", "jsonl", "a.gz"])
def test_other_endings_are_refused_with_those_that_are_read(name):
    with pytest.raises(FileUnreadable, match=r"\.jsonl, .*\.parquet"):
        format_of(name)


def test_lines_that_hold_json_are_the_same_compressed_or_not(tmp_path):
    lines = [json.dumps({"id": str(i)}).encode() for i in range(5)]
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(lines))
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(b"\n".join(lines)))
    assert records(tmp_path / "a.jsonl") == records(tmp_path / "b.jsonl.gz") == lines
