"""What is left to do for a batch of companies, given what the index has of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from index.base import Known
from index.document import Document, text_hash
from index.settle import keeps_vector
from model.contract import COMPANY_FIELDS, TextRecipe
from pipelines.company import Company


@dataclass(frozen=True)
class Task:
    """A document to write. With a text it must be encoded first; without, it is a tombstone or keeps its vector."""

    document: Document
    source: str
    text: str | None = None
    moves_on: bool = False  # nothing but its version is new


def newest(companies: Iterable[Company]) -> list[Company]:
    """One company an id; of equal versions the first, as the index has it."""
    kept: dict[str, Company] = {}
    for company in companies:
        other = kept.get(company.document.id)
        if other is None or company.document.version > other.document.version:
            kept[company.document.id] = company
    return list(kept.values())


def plan(
    company: Company, known: Mapping[str, Known], recipe: TextRecipe, model: str
) -> Task | Literal["stale", "unchanged"]:
    """What is newer and otherwise the same still moves the version on, so that nothing older can come between; only
    a record without a time of its own claims no more than what the index says already."""
    document, stored = company.document, known.get(company.document.id)
    if stored and stored.version >= document.version:
        return "stale" if stored.version > document.version else "unchanged"
    if document.deleted:
        return "unchanged" if stored and stored.deleted and not company.timed else Task(document, company.source)
    text = text_of(document, recipe)
    document = replace(document, model=model, text_hash=text_hash(text))
    if not keeps_vector(document, stored):
        return Task(document, company.source, text)
    assert stored is not None
    same = stored.fields_hash == document.fields_hash
    return "unchanged" if same and not company.timed else Task(document, company.source, moves_on=same)


def text_of(document: Document, recipe: TextRecipe) -> str:
    return recipe.render({name: getattr(document, name) for name in COMPANY_FIELDS})
