"""A dead letter keeps its record to the byte, can be edited as JSON, and comes back as old as it was."""

import json
from datetime import datetime

import pytest

from index.document import Document
from pipelines.arrival import Arrival
from pipelines.company import BadRecord, decode, parse
from pipelines.dead_letter import DeadLetter, of_document, of_raw
from pipelines.replay import revive

AT = 1_700_000_000_000_000
NOW = AT + 1


def replayed(letter: DeadLetter) -> Arrival:
    return revive(Arrival(letter.to_json(), "letters.jsonl, byte 0"))


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
    with pytest.raises(BadRecord, match="^description: .*UTF-8"):
        parse(row, 1, NOW)


def test_rows_with_times_can_be_written():
    letter = of_raw({"id": "a", "updated_at": datetime(2024, 5, 1, 12)}, "parse", "why", "source", AT)
    assert json.loads(letter.to_json())["record"]["updated_at"] == "2024-05-01T12:00:00"


def test_a_replayed_record_is_as_new_as_its_dead_letter_and_keeps_its_source():
    arrival = replayed(of_raw(b'{"id": "a"}', "parse", "why", "there", AT))
    assert (arrival.time, arrival.source, arrival.mapped) == (AT, "there", False)


@pytest.mark.parametrize(
    "document",
    [
        Document("a", 123_456_789, name="N", description="D", tags=("x", "y"), industry="I", model="m", text_hash="h"),
        Document.tombstone("a", 5),
    ],
)
def test_a_company_refused_after_parsing_comes_back_with_its_version(document):
    arrival = replayed(of_document(document, "encode", "why", "there", AT))
    assert arrival.mapped  # whatever --columns says
    again = parse(arrival.record, AT, NOW)
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
        revive(Arrival(line, "source"))


def test_a_record_put_right_is_a_company():
    letter = of_raw(b'{"id": "a", "description": 7}', "parse", "why", "source", AT)
    mended = json.loads(letter.to_json())
    mended["record"]["description"] = "Makes anvils"
    arrival = revive(Arrival(json.dumps(mended).encode(), "letters"))
    assert parse(arrival.record, arrival.time, NOW) == Document("a", AT, description="Makes anvils")
    assert decode(json.dumps(mended).encode())["stage"] == "parse"
