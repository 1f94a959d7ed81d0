"""The pipeline with a bug planted into it from outside: `python -m benchmarks.soak.parts.planted KIND FLAGS...`.

For the checker's own proof: each kind of bug, one at a time, has to be found. The product's code has none of this.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from common.errors import InputError
from index.base import Outcome
from index.document import Document
from index.elastic.store import ElasticIndex
from model.contract import TextRecipe

EVERY = 40  # documents: one of so many suffers
OTHER_RECIPE = TextRecipe("{website}. {tags}. {description}")

_counted = itertools.count(1)


def _struck(document: Document) -> bool:
    return not document.id.startswith("marker-") and next(_counted) % EVERY == 0


def lose(write: Callable[..., list[Outcome]]) -> Callable[..., list[Outcome]]:
    """One document in forty is said to be written, and is not."""

    def losing(self: ElasticIndex, documents: Sequence[Document], *more: Any, **options: Any) -> list[Outcome]:
        kept = [document for document in documents if not _struck(document)]
        written = iter(write(self, kept, *more, **options))
        present = {id(document) for document in kept}
        return [next(written) if id(one) in present else Outcome(one.id, "indexed") for one in documents]

    return losing


def revive(write: Callable[..., list[Outcome]]) -> Callable[..., list[Outcome]]:
    """Some deleted companies are there again, as they were, and newer than their deletion."""

    def reviving(self: ElasticIndex, documents: Sequence[Document], *more: Any, **options: Any) -> list[Outcome]:
        struck = [one for one in documents if one.deleted and next(_counted) % 5 == 0]
        before = self.get_many([one.id for one in struck])
        outcomes = write(self, documents, *more, **options)
        again = [replace(before[one.id], version=one.version + 1) for one in struck if one.id in before]
        if again:
            write(self, again)
        return outcomes

    return reviving


def duplicate(write: Callable[..., list[Outcome]]) -> Callable[..., list[Outcome]]:
    """One document in forty is there a second time, under an id of its own."""

    def duplicating(self: ElasticIndex, documents: Sequence[Document], *more: Any, **options: Any) -> list[Outcome]:
        outcomes = write(self, documents, *more, **options)
        copies = [replace(one, id=f"{one.id}-copy") for one in documents if one.embedding is not None and _struck(one)]
        if copies:
            write(self, copies)
        return outcomes

    return duplicating


def mix(text_of: Callable[[Document, TextRecipe], str]) -> Callable[[Document, TextRecipe], str]:
    """The text of one company in forty is made by another recipe than the model's."""

    def mixing(document: Document, recipe: TextRecipe) -> str:
        return text_of(document, OTHER_RECIPE if _struck(document) else recipe)

    return mixing


def plant(kind: str) -> None:
    if kind == "mixed":
        from pipelines.transforms import skip_unchanged

        skip_unchanged.text_of = mix(skip_unchanged.text_of)  # type: ignore[assignment]
        return
    bugs = {"lost": lose, "revived": revive, "duplicated": duplicate}
    if kind not in bugs:
        raise InputError(f"no bug of the kind {kind!r}; there are {', '.join((*bugs, 'mixed'))}")
    ElasticIndex.write = bugs[kind](ElasticIndex.write)  # type: ignore[method-assign]


def main(argv: list[str] | None = None) -> int:
    kind, *flags = sys.argv[1:] if argv is None else argv
    plant(kind)
    from pipelines import encode

    return encode.main(flags)


if __name__ == "__main__":
    sys.exit(main())
