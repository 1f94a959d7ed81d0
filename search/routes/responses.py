"""Converts documents and reasons to the API's schemas."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from index.base import Hit
from index.document import Document
from search.ranking.sentences import Sentence
from search.ranking.why import Reason
from search.routes import schemas


def company(document: Document) -> schemas.Company:
    return schemas.Company(
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


def hits(found: Sequence[Hit], offset: int, reasons: list[list[Reason]] | None) -> list[schemas.Hit]:
    return [
        schemas.Hit(
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


def _why(reason: Reason, id: str) -> schemas.Why:
    return schemas.Why(score=reason.score, mine=_span(reason.mine, reason.of), theirs=_span(reason.theirs, id))


def _span(sentence: Sentence, id: str | None) -> schemas.Span:
    return schemas.Span(text=sentence.text, start=sentence.start, end=sentence.end, id=id)
