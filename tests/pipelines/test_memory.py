"""Small files that become large: what reading them takes, against reading a file of one row."""

import gzip

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reading_memory import readings

MB = 1 << 20
ALLOWED = 180 * MB  # each of these files becomes much more
ROW, LAST = b"1,a\n", b"3,c\n"
LINE, LAST_LINE = b'{"id":"1","description":"a"}\n', b'{"id":"3","description":"c"}\n'


def packed(path, before, piece, times, after):
    with gzip.open(path, "wb", compresslevel=1) as file:
        for part in (before, *[piece] * times, after):
            file.write(part)
    return path


def read_within_bounds(path, small, replay=False):
    baseline, reading = readings(small, path, replay=replay)
    assert reading.peak - baseline.peak < ALLOWED
    return reading


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.csv"
    path.write_bytes(b"id,description\n" + ROW)
    return path


HEADER = b"id,description\n"
NEVER = b'a"' + b"b" * 50 + b',"c\n'  # leaves a quote open, within one and after one


@pytest.mark.parametrize(
    ("before", "piece", "times", "after", "reason"),
    [
        (HEADER + ROW + b"2,", b"x" * MB, 250, b"\n" + LAST, "a line of 262,144,003 letters; 4,194,304 are read"),
        (HEADER + ROW + b'2,"', b"x" * MB + b"\n", 250, b"\n" + LAST, "not a row of CSV"),
        (HEADER + ROW, b"ab," * MB, 10, b"\n" + LAST, "a line of 31,457,281 letters"),
        (HEADER + ROW, b"ab," * MB, 1, b"\n" + LAST, "a line of 1,048,577 columns; 500,000 are read"),
        (HEADER + ROW, NEVER * 100_000, 30, b'z"\n' + LAST, "is a quote never closed?"),
    ],
    ids=["cell", "quote", "wide", "columns", "lines"],
)
def test_a_row_of_csv_that_is_too_large_is_a_dead_letter_and_the_rest_is_read(
    tmp_path, small, before, piece, times, after, reason
):
    path = packed(tmp_path / "a.csv.gz", before, piece, times, after)
    reading = read_within_bounds(path, small)
    assert (reading.ids[0], reading.ids[-1]) == ("1", "3")
    assert reason in reading.letters[0]["reason"]
    assert reading.letters[0]["source"] == f"{path}, line 3"
    assert 0 < len(reading.letters[0]["record"]) <= 1000


def test_a_header_that_is_too_large_leaves_rows_without_names(tmp_path, small):
    reading = read_within_bounds(packed(tmp_path / "a.csv.gz", b"", b"x" * MB, 250, b"\n" + ROW), small)
    assert reading.ids == []
    assert [letter["source"][-6:] for letter in reading.letters] == ["line 1", "line 2"]
    assert "the header has 0" in reading.letters[1]["reason"]


@pytest.mark.parametrize(
    ("piece", "times", "reason"),
    [
        (b" " * MB, 250, "a line of 262,1"),
        (b"{}," * 130_000, 10, "1,300,002 nested"),
        (b"1," * 180_000, 10, "1,800,003 val"),
    ],
    ids=["line", "objects", "numbers"],
)
@pytest.mark.parametrize("replay", [False, True])
def test_a_line_that_is_too_large_is_a_dead_letter_and_the_rest_is_read(tmp_path, small, piece, times, reason, replay):
    first, last, before, after = LINE, LAST_LINE, b'{"id":"2","description":"b","x":[', b"1]}"
    if replay:
        wrap = b'{"record":%s,"stage":"parse","reason":"r","source":"s","at":"2024-01-01T00:00:00Z"}'
        first, last = wrap % LINE.strip() + b"\n", wrap % LAST_LINE.strip() + b"\n"
        before, after = b'{"record":' + before, after + (wrap % b"")[len(b'{"record":') :]
    path = packed(tmp_path / "a.jsonl.gz", first + before, piece, times, after + b"\n" + last)
    reading = read_within_bounds(path, packed(tmp_path / "small.jsonl.gz", first, b"", 0, b""), replay)
    assert reading.ids == ["1", "3"]
    assert len(reading.letters) == 1
    if not replay:
        assert reason in reading.letters[0]["reason"]
    assert reading.letters[0]["source"].startswith(f"{path}, byte ")


def parquet(path, columns, **options):
    pq.write_table(pa.table(columns), path, compression="zstd", **options)
    assert path.stat().st_size < 1 * MB
    return path


@pytest.fixture
def small_parquet(tmp_path):
    return parquet(tmp_path / "small.parquet", {"id": ["1"], "description": ["a"]})


@pytest.mark.parametrize("dictionary", [True, False])
def test_a_cell_of_parquet_that_is_too_large_is_not_unpacked_and_other_groups_are_read(
    tmp_path, small_parquet, dictionary
):
    columns = {"id": ["1", "2", "3"], "description": ["a", "x" * (250 * MB), "c"]}
    path = parquet(tmp_path / "a.parquet", columns, use_dictionary=dictionary, row_group_size=1)
    reading = read_within_bounds(path, small_parquet)
    assert reading.ids == ["1", "3"]
    assert [letter["source"] for letter in reading.letters] == [f"{path}, row 1"]
    assert "description: a page of" in reading.letters[0]["reason"] and "262,144,0" in reading.letters[0]["reason"]
    assert '"id": "2"' in reading.letters[0]["record"]


def test_a_cell_that_can_be_unpacked_is_alone_in_being_refused(tmp_path, small_parquet):
    columns = {"id": ["1", "2", "3"], "description": ["a", "x" * (5 * MB), "c"]}
    reading = read_within_bounds(parquet(tmp_path / "a.parquet", columns), small_parquet)
    assert reading.ids == ["1", "3"]
    assert "description: a row of 5,242," in reading.letters[0]["reason"]
    assert reading.letters[0]["record"].startswith('{"id": "2", "description": "xxx')


@pytest.mark.parametrize(
    "encoding",
    [{"use_dictionary": True}, {"use_dictionary": False, "column_encoding": {"description": "DELTA_BYTE_ARRAY"}}],
)
def test_one_long_text_in_a_thousand_rows_is_unpacked_for_a_few_of_them_at_a_time(tmp_path, small_parquet, encoding):
    columns = {"id": [str(number) for number in range(1000)], "description": ["x" * 490_000] * 1000}
    reading = read_within_bounds(parquet(tmp_path / "a.parquet", columns, **encoding), small_parquet)
    assert len(reading.ids) == 1000


def test_a_list_of_millions_is_not_unpacked(tmp_path, small_parquet):
    columns = {"id": ["1"], "description": ["a"], "tags": [["t"] * 40_000_000]}
    reading = read_within_bounds(parquet(tmp_path / "a.parquet", columns), small_parquet)
    assert "tags: lists of 40,000,000 values" in reading.letters[0]["reason"]
