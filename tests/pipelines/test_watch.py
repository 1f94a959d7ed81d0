"""What a watched folder may hold without ending the job: each file that cannot be read is one dead letter."""

import gzip
import logging
import os
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.io.filesystem import BeamIOError, FileMetadata
from apache_beam.io.filesystems import FileSystems

from pipelines.io import files, watch
from pipelines.io.files import records
from pipelines.io.watch import records_or_fault, whole
from pipelines.records import SAME_NAMES
from pipelines.transforms.parse import Parse

TIME = 1_700_000_000_000_000
LINES = b"".join(b'{"id": "%d", "description": "d"}\n' % random.Random(n).getrandbits(64) for n in range(2000))


def arrivals(path):
    found = FileMetadata(str(path), os.path.getsize(path) if path.exists() else 0, TIME / 1e6)
    return list(records_or_fault(whole(found), SAME_NAMES))


def letter(raw):
    (out,) = Parse(SAME_NAMES).process(raw)
    return out.value


def half(path, content: bytes):
    path.write_bytes(content[: len(content) // 2])
    return path


def test_what_was_read_of_a_half_copied_file_stays_good_and_the_file_is_a_dead_letter(tmp_path):
    path = half(tmp_path / "a.jsonl.gz", gzip.compress(LINES))
    *good, fault = arrivals(path)
    assert len(good) > 500 and not any(one.fault for one in good)
    assert {one.time for one in arrivals(path)} == {TIME}
    dead = letter(fault)
    assert (dead.stage, dead.record) == ("read", "")
    assert dead.source.startswith(str(path)) and f"{path} cannot be read" in dead.reason
    path.write_bytes(gzip.compress(LINES))
    assert len(arrivals(path)) == 2000 and not any(one.fault for one in arrivals(path))


def test_other_files_that_cannot_be_read_are_one_dead_letter_each(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "plain.csv.gz").write_text("id,description\n")
    pq.write_table(pa.table({"id": ["a"], "description": ["d"]}), tmp_path / "whole.parquet")
    half(tmp_path / "half.parquet", (tmp_path / "whole.parquet").read_bytes())
    (tmp_path / "folder.jsonl").mkdir()
    for name, reason in {
        "notes.txt": "has no ending that is read",
        "plain.csv.gz": "cannot be read",
        "half.parquet": "cannot be read",
        "vanished.jsonl": "No such file",
        "folder.jsonl": "cannot be read",
    }.items():
        (fault,) = arrivals(tmp_path / name)
        dead = letter(fault)
        assert dead.stage == "read" and name in dead.source and reason in dead.reason, dead


def test_an_object_that_the_store_has_no_more_is_a_dead_letter_and_a_sick_store_an_exception(tmp_path, monkeypatch):
    class Gone(Exception):  # as Google's client says it
        code = 404

    def raising(error):
        def opened(*arguments, **options):
            raise error

        monkeypatch.setattr(files.FileSystems, "open", opened)

    raising(Gone("404 GET gs://b/a.jsonl"))
    assert "404 GET" in letter(arrivals(tmp_path / "a.jsonl")[0]).reason
    for error in (ConnectionResetError("reset"), TimeoutError("slow"), RuntimeError("503")):
        raising(error)
        with pytest.raises(type(error)):
            arrivals(tmp_path / "a.jsonl")


def test_a_look_that_fails_is_told_and_the_next_one_looks_again(monkeypatch, caplog):
    def away(patterns):
        raise BeamIOError("Match operation failed", {"gs://b/*": OSError("503")})

    monkeypatch.setattr(FileSystems, "match", away)
    with caplog.at_level(logging.WARNING):
        assert not list(watch._look("gs://b/*").outputs)
    assert "gs://b/* cannot be looked for" in caplog.text


def test_a_batch_still_ends_at_a_file_that_was_cut_off(tmp_path):
    path = half(tmp_path / "a.jsonl.gz", gzip.compress(LINES))
    with pytest.raises(files.FileUnreadable):
        list(records((str(path), 0, files.END, TIME)))
