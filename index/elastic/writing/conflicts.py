"""What a version conflict comes to.

A document is sent with its version as Elasticsearch's external one, which lets the newest win by itself. Of equal
versions the greater order must win, whichever came first: then the stored document is read, and ours is sent with a
number one above that of what was read, which the server takes only while nobody has written since. So `_version` may
run ahead of a document's own version, never behind it: what the server takes is newer in truth, and what it refuses is
decided here, by the stored document itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from index.base import Outcome
from index.document import Document
from index.elastic.mapping import to_known

GREATEST = 2**63 - 1
_CURRENT = re.compile(r"current version \[(-?\d+)\]")


def resolution(
    document: Document, found: Mapping[str, Any], said: str, written: int, force: bool
) -> Outcome | int | None:
    """The outcome, or the number to send the document with; None where that cannot be told yet.

    `found` is the document as the server has it, `said` its reason for the conflict.
    """
    if not found.get("found"):
        # Removed: the server remembers the number of a deleted document for a minute, and says it in words alone.
        current = _CURRENT.search(said)
        return max(int(current[1]) + 1, document.version) if current else None
    source = found["_source"]
    stored = to_known(source)
    if document.order == stored.order and source["indexed_at"] == written:
        # Ours: sent before, and the response was lost or the rest of the request refused.
        return done(document)
    if document.order > stored.order or (force and document.version == stored.version):
        return max(int(found["_version"]) + 1, document.version)
    return Outcome(document.id, "stale")


def done(document: Document) -> Outcome:
    return Outcome(document.id, "deleted" if document.deleted else "indexed")


def action(document: Document, number: int) -> dict[str, Any]:
    """Above the greatest number there is none: there the last of two that write at once wins."""
    kind = "external" if number <= GREATEST else "external_gte"
    return {"index": {"_id": document.id, "version": min(number, GREATEST), "version_type": kind}}
