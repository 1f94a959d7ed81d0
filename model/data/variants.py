"""The texts that an item may appear as in training: with fields left out, so that poorer records work too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from model.contract import TextRecipe
from model.errors import DataError


@dataclass(frozen=True)
class Variants:
    """Distinct texts, and for each item the ones it may appear as: the whole record first."""

    texts: tuple[str, ...]
    of_item: tuple[np.ndarray, ...]  # int [variants], into texts

    def whole(self, items: np.ndarray) -> np.ndarray:
        return np.array([self.of_item[item][0] for item in items], np.int64)

    def draw(self, items: np.ndarray, share: float, generator: np.random.Generator) -> np.ndarray:
        """A text for each distinct item: poorer than the whole record with probability `share`."""
        distinct, place = np.unique(items, return_inverse=True)
        poorer = generator.random(len(distinct)) < share
        which = generator.random(len(distinct))
        chosen = [
            options[1 + int(w * (len(options) - 1))] if poor and len(options) > 1 else options[0]
            for options, poor, w in zip((self.of_item[item] for item in distinct), poorer, which, strict=True)
        ]
        return np.array(chosen, np.int64)[place]


def of_texts(items: Sequence[str]) -> Variants:
    return Variants(tuple(items), tuple(np.array([position]) for position in range(len(items))))


def of_companies(items: Sequence[str], companies: Mapping[str, Mapping], recipe: TextRecipe) -> Variants:
    """Each company whole, without each one optional field, and without all of them."""
    unknown = [item for item in items if item not in companies]
    if unknown:
        raise DataError(f"pairs name {len(unknown)} companies that the companies file lacks, first {unknown[0]!r}")
    optional = [field for field in recipe.fields if field != "description"]
    texts: dict[str, int] = {}
    of_item = []
    for item in items:
        left_out: list[set[str]] = [set(), *({field} for field in optional), set(optional)]
        rendered = dict.fromkeys(
            recipe.render({field: value for field, value in companies[item].items() if field not in missing})
            for missing in left_out
        )
        if not any(rendered):
            raise DataError(f"company {item!r} has none of the fields of the text recipe {recipe.template!r}")
        of_item.append(np.array([texts.setdefault(text, len(texts)) for text in rendered if text]))
    return Variants(tuple(texts), tuple(of_item))
