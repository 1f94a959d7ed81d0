"""A record without a time of its own is as old as its file, whenever and however often that is read."""

import os
import time

import pytest
from apache_beam.io.filesystem import FileMetadata
from beam_store import BeamStore
from companies import state
from place import Place

from pipelines.records import rfc3339 as at

HOUR = 3_600_000_000  # microseconds
NOW = time.time_ns() // 1000
WRITTEN = NOW - 10 * HOUR


@pytest.fixture
def place(tmp_path, encoder) -> Place:
    return Place(tmp_path, encoder.address)


def dated(path, microseconds: int):
    os.utime(path, ns=(0, microseconds * 1000))
    return path


def company(id, **fields):
    return {"id": id, "description": f"Makes {id}", **fields}


def test_its_version_is_the_time_the_file_was_modified(place):
    place.run(dated(place.file(company("a"), {"id": "b", "deleted": True}), WRITTEN + 7))
    assert {id: known.version for id, known in place.index.known("ab").items()} == {"a": WRITTEN + 7, "b": WRITTEN + 7}


def test_an_old_dump_run_again_overwrites_nothing_newer_and_revives_nothing(place):
    dump = dated(place.file(company("a"), company("b"), company("c"), name="dump.jsonl"), WRITTEN)
    place.run(dump)
    newer = at(WRITTEN + HOUR)
    changes = company("a", description="Newer", updated_at=newer), {"id": "b", "deleted": True, "updated_at": newer}
    assert place.run(place.file(*changes))["read"] == 2
    before = state(place.index)
    assert place.run(dump) == {"read": 3, "stale": 2, "unchanged": 1}
    assert state(place.index) == before
    assert place.index.get("a").description == "Newer" and sorted(place.index.get_many("abc")) == ["a", "c"]


def test_a_file_that_was_modified_since_is_newer_and_one_read_again_is_written_no_more(place, encoder):
    path = dated(place.file(company("a"), company("b")), WRITTEN)
    place.run(path)
    written = {id: one.indexed_at for id, one in place.index.get_many("ab").items()}
    assert place.run(path) == {"read": 2, "unchanged": 2}
    assert {id: one.indexed_at for id, one in place.index.get_many("ab").items()} == written
    dated(place.file(company("a"), company("b", description="Makes more")), WRITTEN + 1)
    assert place.run(path) == {"encoded": 1, "indexed": 1, "read": 2, "unchanged": 1}
    assert {known.version for known in place.index.known("ab").values()} == {WRITTEN + 1}


def test_the_time_of_a_file_in_an_object_store_is_the_stores(place, tmp_path):
    (tmp_path / "bucket").mkdir()
    base = BeamStore.open_in(tmp_path / "bucket")
    with BeamStore(None).create(f"{base}/a.jsonl") as file:
        file.write(b'{"id": "a", "description": "d"}\n{"id": "b", "description": "d"}')
    (key,) = (tmp_path / "bucket").iterdir()
    dated(key, WRITTEN)
    assert place.run(f"{base}/*.jsonl") == {"encoded": 2, "indexed": 2, "read": 2}
    assert place.index.known(["a"])["a"].version == WRITTEN


def test_where_the_store_tells_no_time_a_record_needs_one_of_its_own(place, tmp_path, monkeypatch):
    monkeypatch.setattr(BeamStore, "metadata", lambda self, path: FileMetadata(path, self.size(path)))
    (tmp_path / "bucket").mkdir()
    base = BeamStore.open_in(tmp_path / "bucket")
    with BeamStore(None).create(f"{base}/a.jsonl") as file:
        file.write(b'{"id": "a", "description": "d"}\n')
        file.write(b'{"id": "b", "description": "d", "updated_at": "2024-05-01T12:00:00Z"}')
    counts = place.run(f"{base}/*.jsonl")
    assert counts == {"bad": 1, "encoded": 1, "indexed": 1, "read": 2}
    (letter,) = place.dead()
    assert letter["reason"].startswith("updated_at: missing, and the store tells no time")
    assert letter["record"] == {"id": "a", "description": "d"}


@pytest.mark.parametrize(("ahead", "ends"), [(23 * HOUR, "indexed"), (25 * HOUR, "bad"), (9_000 * 8766 * HOUR, "bad")])
def test_a_file_from_the_future_is_held_to_the_bound_of_a_records_own_time(place, ahead, ends):
    path = dated(place.file(company("a"), company("b", updated_at=at(WRITTEN))), NOW + ahead)
    counts = place.run(path)
    assert (counts["read"], counts[ends]) == (2, 1 if ends == "bad" else 2)
    for letter in place.dead():
        assert letter["record"]["id"] == "a"
        assert "updated_at: missing, and the time of its file" in letter["reason"] and "clock" in letter["reason"]


@pytest.mark.parametrize("broken", [b'{"id": "a", "description": 7}', b'{"id": "a", "description": "Old"'])
def test_a_mended_record_is_as_old_as_its_file_was(place, broken):
    place.run(dated(place.file(broken, company("z")), WRITTEN))
    place.run(place.file(company("a", description="Newer", updated_at=at(WRITTEN + 1)), name="newer.jsonl"))
    (letter,) = place.dead()
    assert letter["at"] > at(NOW)
    letter["record"] = company("a", description="Mended")
    assert place.run(place.file(letter, name="mended.jsonl"), kind="--replay") == {"read": 1, "stale": 1}
    letter["record"]["id"] = "new"
    place.run(place.file(letter, name="mended.jsonl"), kind="--replay")
    assert place.index.known(["new"])["new"].version == WRITTEN
