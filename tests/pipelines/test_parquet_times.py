"""Days and times of Parquet, of whatever unit and zone, are the times of their records."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.io.dead_letters import of_raw, replay
from pipelines.io.files import END, read
from pipelines.records import SAME_NAMES, BadRecord
from pipelines.transforms.parse import parse

NOON = 1_714_564_800  # 2024-05-01T12:00:00Z, in seconds
DAY = NOON // 86_400
MICROSECONDS = NOON * 10**6
NOW = MICROSECONDS * 2
DATES = {"date32": pa.date32(), "date64": pa.date64()}
TIMES = {
    f"{unit} {zone}": pa.timestamp(unit, zone)
    for unit in ("s", "ms", "us", "ns")
    for zone in (None, "UTC", "Europe/Paris", "-05:00", "Mars/Olympus")
}
EACH = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def records(tmp_path, values: pa.Array) -> list[dict]:
    path = tmp_path / "a.parquet"
    ids = [str(number) for number in range(len(values))]
    table = pa.table({"id": ids, "description": ["d"] * len(values), "updated_at": values})
    pq.write_table(table, path, version="2.6", store_schema=True)
    return [raw.record for raw in read(str(path), 0, END, SAME_NAMES)]


def versions(tmp_path, values: pa.Array) -> list[int]:
    return [parse(record, 7, NOW).version for record in records(tmp_path, values)]


@pytest.mark.parametrize("type", TIMES.values(), ids=TIMES)
def test_a_time_is_its_moment_and_none_is_the_files(tmp_path, type):
    values = pa.array([NOON * EACH[type.unit], None, 0], pa.int64()).cast(type)
    assert versions(tmp_path, values) == [MICROSECONDS, 7, 0]


@pytest.mark.parametrize("type", DATES.values(), ids=DATES)
def test_a_day_is_its_midnight_in_utc(tmp_path, type):
    days = pa.array([DAY, None, 0], pa.int32()).cast(pa.date32()).cast(type)
    assert versions(tmp_path, days) == [DAY * 86_400 * 10**6, 7, 0]


def test_nanoseconds_are_floored(tmp_path):
    values = pa.array([NOON * 10**9 + 1_999, NOON * 10**9 + 999], pa.timestamp("ns", "UTC"))
    assert versions(tmp_path, values) == [MICROSECONDS + 1, MICROSECONDS]


@pytest.mark.parametrize("type", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_texts_of_rfc_3339_are_times_too(tmp_path, type):
    texts = ["2024-05-01T12:00:00Z", "2024-05-01T14:00:00.5+02:00", ""]
    assert versions(tmp_path, pa.array(texts).cast(type)) == [MICROSECONDS, MICROSECONDS + 500_000, 7]


def test_times_in_a_dictionary_are_times(tmp_path):
    path = tmp_path / "a.parquet"
    times = pa.array([NOON, NOON], pa.timestamp("s")).dictionary_encode()
    pq.write_table(pa.table({"id": ["a", "b"], "description": ["d", "d"], "updated_at": times}), path)
    found = [raw.record for raw in read(str(path), 0, END, SAME_NAMES)]
    assert [parse(record, 7, NOW).version for record in found] == [MICROSECONDS] * 2


@pytest.mark.parametrize(
    ("type", "wrong"),
    [
        (pa.timestamp("s"), NOON * 10**6),  # microseconds in a column of seconds
        (pa.timestamp("ms"), 2**62),  # a cast to microseconds comes to 1970
        (pa.timestamp("us", "UTC"), -(2**62)),
        (pa.date32(), 2**31 - 1),
    ],
)
def test_a_time_that_no_calendar_has_is_bad_alone(tmp_path, type, wrong):
    right = DAY if type == pa.date32() else NOON * EACH[type.unit]
    integers = pa.int32() if type == pa.date32() else pa.int64()
    bad, good, none = records(tmp_path, pa.array([wrong, right, None], integers).cast(type))
    assert parse(good, 7, NOW).version == (DAY * 86_400 * 10**6 if type == pa.date32() else MICROSECONDS)
    assert parse(none, 7, NOW).version == 7
    with pytest.raises(BadRecord, match=r"^updated_at: "):
        parse(bad, 7, NOW)


@pytest.mark.parametrize("type", [pa.date32(), pa.timestamp("ms"), pa.timestamp("ns", "Europe/Paris")])
def test_a_dead_letter_of_a_row_comes_back_with_its_time(tmp_path, type):
    values = pa.array([DAY], pa.int32()).cast(pa.date32()).cast(type)
    (record,) = records(tmp_path, values)
    letter = of_raw(record | {"description": None}, "parse", "why", "there", NOW)
    from pipelines.records import RawRecord

    again = replay(RawRecord(letter.to_json(), "letters")).record
    assert parse(again | {"description": "d"}, 7, NOW).version == DAY * 86_400 * 10**6
