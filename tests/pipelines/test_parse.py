"""Good records become companies; each bad one says which field is wrong, and quotes it."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from bad_records import BAD

from index.document import Document
from pipelines.records import MAX_DESCRIPTION_BYTES, SAME_NAMES, BadRecord, Columns, decode, microseconds, rfc3339
from pipelines.transforms.parse import MAX_TAGS, MAX_TEXT_BYTES, parse

NOW = microseconds(datetime(2025, 1, 1, tzinfo=UTC))
STARTED = NOW - 1
GOOD = {"id": "acme", "description": "Makes anvils"}


def taken(**fields) -> Document:
    return parse(GOOD | fields, STARTED, NOW)


def refused(line: bytes) -> str:
    with pytest.raises(BadRecord) as refusal:
        parse(decode(line), STARTED, NOW)
    return str(refusal.value)


# good ones


def test_every_field_is_taken():
    texts = {name: f"a {name}" for name in ("name", "description", "sector", "industry", "country", "website")}
    row = {"id": "a", **texts, "tags": ["x", "y"], "updated_at": "1970-01-01T00:00:01Z", "deleted": False}
    assert parse(row, STARTED, NOW) == Document("a", 1_000_000, tags=("x", "y"), **texts)


def test_missing_null_and_empty_fields_are_alike():
    assert taken() == taken(name=None, sector="", tags=None, updated_at=None, deleted=None) == taken(updated_at="")


def test_a_record_without_a_time_has_the_version_it_is_given():
    assert taken().version == STARTED


@pytest.mark.parametrize(
    ("time", "version"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00.000001Z", 1),
        ("1970-01-01t00:00:00.1z", 100_000),
        ("1970-01-01 00:00:00.1234567+00:00", 123_456),  # finer than a version: cut
        ("1970-01-01T01:00:00+01:00", 0),
        ("1969-12-31T23:30:00-00:30", 0),
        ("1972-06-30T23:59:60Z", 78_796_800_000_000),  # a leap second is the first of the next day
        (datetime(1970, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))), 0),
        (datetime(1970, 1, 1, 0, 0, 1), 1_000_000),  # Parquet, without a zone
    ],
)
def test_a_time_becomes_microseconds(time, version):
    assert taken(updated_at=time).version == version


def test_a_number_is_an_id_and_a_row_may_write_tags_as_one_text():
    assert taken(id=320193).id == "320193"
    assert taken(tags="b2b| craft ||").tags == ("b2b", "craft")


def test_a_deleted_company_needs_no_text():
    assert parse({"id": "a", "deleted": True, "description": 7}, 5, NOW) == Document.tombstone("a", 5)
    assert parse({"id": "a", "deleted": "TRUE"}, 5, NOW).deleted
    assert not taken(deleted="0").deleted


def test_limits_themselves_are_kept():
    long = taken(
        id="i" * 512, description="d" * MAX_DESCRIPTION_BYTES, name="n" * MAX_TEXT_BYTES, tags=["t"] * MAX_TAGS
    )
    assert len(long.tags) == MAX_TAGS
    assert taken(updated_at=rfc3339(NOW + 3_600_000_000)).version > NOW  # an hour ahead is a wrong clock


def test_a_byte_order_mark_and_spaces_around_are_no_fault():
    assert decode(b'\xef\xbb\xbf {"id": "a"} \r') == {"id": "a"}


# bad ones


@pytest.mark.parametrize(("line", "beginning", "part"), [(line, *told) for line, told in BAD.items()])
def test_a_bad_record_names_its_field_and_quotes_the_value(line, beginning, part):
    reason = refused(line)
    assert reason.startswith(beginning) and part in reason, reason
    assert len(reason) < 300
    reason.encode()  # whoever prints it can


# names


def test_columns_map_names_and_count_the_rest():
    columns = Columns({"id": "cik", "description": "text"})
    fields, unknown = columns.fields({"cik": 7, "text": "d", "name": "n", "description": "other", "ticker": "T"})
    assert fields == {"id": 7, "description": "d", "name": "n"}
    assert unknown == 2


def test_without_a_mapping_names_are_the_fields():
    assert SAME_NAMES.fields({"id": "a", "x": 1}) == ({"id": "a"}, 1)


def test_a_mapping_of_no_field_is_refused():
    with pytest.raises(ValueError, match="'ticker' is not a field"):
        Columns({"ticker": "t"})


def test_times_are_written_as_they_are_read():
    assert taken(updated_at=rfc3339(1_714_564_800_000_001)).version == 1_714_564_800_000_001
