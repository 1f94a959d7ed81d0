"""From documents and reasons to what goes over the wire."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from index.base import Hit
from index.document import Document
from search import wire
from search.sentences import Sentence
from search.why import Reason


def company(document: Document) -> wire.Company:
    return wire.Company(
        id=document.id,
        name=document.name,
        description=document.description,
        sector=document.sector,
        industry=document.industry,
        country=document.country,
        website=document.website,
        tags=list(document.tags),
        updated_at=moment(document.version),
    )


def hits(found: Sequence[Hit], offset: int, reasons: list[list[Reason]] | None) -> list[wire.Hit]:
    return [
        wire.Hit(
            company=company(hit.document),
            score=hit.score,
            rank=offset + place + 1,
            why=[_why(reason, hit.document.id) for reason in reasons[place]] if reasons is not None else None,
        )
        for place, hit in enumerate(found)
    ]


def moment(microseconds: int | None) -> str | None:
    """RFC 3339; None for a version that is no time."""
    if microseconds is None:
        return None
    try:
        return datetime.fromtimestamp(microseconds / 1e6, UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return None


def _why(reason: Reason, id: str) -> wire.Why:
    return wire.Why(score=reason.score, mine=_span(reason.mine, reason.of), theirs=_span(reason.theirs, id))


def _span(sentence: Sentence, id: str | None) -> wire.Span:
    return wire.Span(text=sentence.text, start=sentence.start, end=sentence.end, id=id)
