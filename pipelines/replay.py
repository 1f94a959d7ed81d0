"""A dead letter back into the record it was, as old as it was."""

from __future__ import annotations

from datetime import datetime

from pipelines.arrival import Arrival
from pipelines.company import BadRecord, microseconds, quote
from pipelines.dead_letter import AFTER_PARSING, DeadLetter


def revive(arrival: Arrival) -> Arrival:
    """Without a time of its own, a record is as new as its dead letter: whatever came since is newer."""
    if not isinstance(arrival.record, bytes):
        raise BadRecord(f"record: {quote(arrival.record)} is not a line of JSON; dead letters are")
    letter = DeadLetter.from_json(arrival.record)
    try:
        record = letter.record.encode(errors="surrogateescape") if isinstance(letter.record, str) else letter.record
        at = microseconds(datetime.fromisoformat(letter.at))
    except UnicodeEncodeError:
        raise BadRecord(f"record: {quote(letter.record)} is not valid UTF-8") from None
    except (ValueError, TypeError):
        raise BadRecord(f"at: {quote(letter.at)} is not a time of RFC 3339") from None
    return Arrival(record, str(letter.source), at, mapped=letter.stage in AFTER_PARSING)
