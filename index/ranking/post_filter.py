"""Companies to be left out of a search by their ids: afterwards, where they are few."""

from __future__ import annotations

from dataclasses import replace

from index.base import Hit
from index.document import Filters

FEW_IDS = 50


def widened(k: int, filters: Filters) -> tuple[int, Filters]:
    """The same search without ids to be left out, where they are few: a filter makes every store search longer than a
    few companies more do. `narrowed` then leaves them out."""
    few = len(filters.exclude_ids) <= FEW_IDS
    return (k + len(filters.exclude_ids), replace(filters, exclude_ids=())) if few else (k, filters)


def narrowed(hits: list[Hit], k: int, filters: Filters) -> list[Hit]:
    return [hit for hit in hits if hit.document.id not in filters.exclude_ids][:k]
