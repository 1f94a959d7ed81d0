"""A dead letter keeps its record to the byte, can be edited as JSON, and comes back as old as it was."""

import json
from datetime import datetime

import pytest

from index.document import Document
from pipelines.io.dead_letters import DeadLetter, of_document, of_raw, replay
from pipelines.records import BadRecord, RawRecord, decode
from pipelines.transforms.parse import parse

AT = 1_700_000_000_000_000
NOW = AT + 1


def replayed(letter: DeadLetter) -> RawRecord:
    return replay(RawRecord(letter.to_json(), "letters.jsonl, byte 0"))


def test_it_has_the_five_fields_of_the_contract():
    letter = json.loads(of_raw(b'{"id": 7}', "parse", "why", "a.jsonl, byte 0", AT).to_json())
    assert letter == {
        "record": {"id": 7},
        "stage": "parse",
        "reason": "why",
        "source": "a.jsonl, byte 0",
        "at": "2023-11-14T22:13:20Z",
    }


@pytest.mark.parametrize("raw", [b"{broken", b'{"a": 1, "a": 2}', b"\xff\xfe caf\xe9", b"[1]", b""])
def test_what_is_no_object_comes_back_to_the_byte(raw):
    letter = of_raw(raw, "parse", "why", "source", AT)
    assert isinstance(letter.record, str)
    assert replayed(letter).record == raw


def test_broken_bytes_inside_an_object_are_still_broken_after_a_replay():
    row = replayed(of_raw(b'{"id": "a", "description": "caf\xe9"}', "parse", "why", "source", AT)).record
    with pytest.raises(BadRecord, match=r"^description: .*UTF-8"):
        parse(row, 1, NOW)


def test_rows_with_times_can_be_written():
    letter = of_raw({"id": "a", "updated_at": datetime(2024, 5, 1, 12)}, "parse", "why", "source", AT)
    assert json.loads(letter.to_json())["record"]["updated_at"] == "2024-05-01T12:00:00Z"
    assert parse(replayed(letter).record | {"description": "d"}, AT, 2 * AT).version == 1_714_564_800_000_000


@pytest.mark.parametrize("record", [b'{"id": "a"}', b"{broken", b'{"id": "a", "updated_at": ""}', {"id": "a"}])
def test_a_replayed_record_is_as_old_as_its_file_or_message_and_unchanged(record):
    letter = of_raw(record, "parse", "why", "there, byte 7", AT, AT - 5)
    assert letter.source == "there, byte 7, as of 2023-11-14T22:13:19.999995Z"
    raw = replayed(letter)
    assert (raw.time, raw.source) == (AT - 5, "there, byte 7")
    assert raw.record in (record, json.loads(record) if raw.record != record else None)
    again = of_raw(raw.record, "parse", "why", raw.source, NOW, raw.time)
    assert (replayed(again).time, again.source) == (AT - 5, letter.source)


@pytest.mark.parametrize("source", ["a, as of noon", "a, as of 2024-99-01T00:00:00Z", "as of 2024-05-01T00:00:00Z"])
def test_a_source_that_only_looks_dated_is_left_as_it_is(source):
    raw = replayed(DeadLetter("{", "parse", "why", source, "2023-11-14T22:13:20Z"))
    assert (raw.time, raw.source) == (AT, source)


def test_a_time_that_no_calendar_has_is_not_written():
    assert of_raw(b"{", "parse", "why", "there", AT, 2**62).source == "there"


def test_a_letter_about_a_file_is_no_record_and_names_the_file():
    letter = of_raw(b"", "read", "file: a.gz cannot be read", "a.gz", AT, AT)
    with pytest.raises(BadRecord, match=r"--input a.gz reads that again"):
        replayed(letter)


def test_a_replayed_record_is_as_new_as_its_dead_letter_and_keeps_its_source():
    raw = replayed(of_raw(b'{"id": "a"}', "parse", "why", "there", AT))
    assert (raw.time, raw.source, raw.mapped) == (AT, "there", False)


@pytest.mark.parametrize(
    "document",
    [
        Document("a", 123_456_789, name="N", description="D", tags=("x", "y"), industry="I", model="m", text_hash="h"),
        Document.tombstone("a", 5),
    ],
)
def test_a_company_refused_after_parsing_comes_back_with_its_version(document):
    raw = replayed(of_document(document, "encode", "why", "there", AT))
    assert raw.mapped  # whatever --columns says
    again = parse(raw.record, AT, NOW)
    assert again.version == document.version != AT
    assert (again.fields_hash, again.deleted) == (document.fields_hash, document.deleted)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"id": "a"}', "^record: missing"),
        (b'{"record": {}, "stage": "parse", "reason": "r", "source": "s"}', "^at: missing"),
        (b'{"record": 7, "stage": "parse", "reason": "r", "source": "s", "at": "t"}', "^record: 7 is neither"),
        (b'{"record": {}, "stage": "parse", "reason": "r", "source": "s", "at": "noon"}', "^at: 'noon'"),
        (b'{"record": {}, "stage": "parse", "reason": "r", "source": "s", "at": 5}', "^at: 5"),
        (b'{"record": "\\ud800", "stage": "", "reason": "", "source": "", "at": "2024-01-01T00:00:00Z"}', "UTF-8"),
        (b"{", "^record: .* is not JSON"),
    ],
)
def test_what_is_no_dead_letter_is_refused(line, reason):
    with pytest.raises(BadRecord, match=reason):
        replay(RawRecord(line, "source"))


def test_a_record_put_right_is_a_company():
    letter = of_raw(b'{"id": "a", "description": 7}', "parse", "why", "source", AT)
    mended = json.loads(letter.to_json())
    mended["record"]["description"] = "Makes anvils"
    raw = replay(RawRecord(json.dumps(mended).encode(), "letters"))
    assert parse(raw.record, raw.time, NOW) == Document("a", AT, description="Makes anvils")
    assert decode(json.dumps(mended).encode())["stage"] == "parse"
