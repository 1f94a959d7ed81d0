"""Explains a hit by the pairs of sentences that are closest to each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from index.document import Document, Vector
from search.ranking.encoder import Encoder, Vectors
from search.ranking.sentences import Sentence, split

PAIRS = 2
SENTENCES = 40  # of one description: the rest says little, and each has to be encoded
# Of one request: encoded in well under the endpoint's deadline, and those of ten ordinary companies many times over.
MINE, THEIRS = 64, 192


@dataclass(frozen=True)
class Passage:
    """A text to be explained by: a company's description, or what was typed."""

    text: str
    id: str | None = None


@dataclass(frozen=True)
class Reason:
    """Two sentences that are close to each other."""

    score: float  # cosine
    mine: Sentence
    of: str | None  # the company that `mine` is from
    theirs: Sentence


@dataclass(frozen=True)
class Explanation:
    """`reasons` of each company the best pairs; `cut` where sentences were left out for their number."""

    reasons: list[list[Reason]]
    cut: bool


def explain(encoder: Encoder, passages: Sequence[Passage], companies: Sequence[Document], model: str) -> Explanation:
    """Of each company the best pairs, the closest first; a sentence is in one pair at most."""
    own, own_cut = budgeted((passage.text for passage in passages), MINE)
    theirs, cut = budgeted((company.description for company in companies), THEIRS)
    mine = [(sentence, passage.id) for passage, some in zip(passages, own, strict=True) for sentence in some]
    texts = [sentence.text for sentence, _ in mine] + [sentence.text for some in theirs for sentence in some]
    vectors = encoder.vectors(texts, model)  # one request for all
    mine = [(sentence, id) for sentence, id in mine if sentence.text in vectors]
    reasons = [_reasons(mine, [one for one in some if one.text in vectors], vectors) for some in theirs]
    return Explanation(reasons, own_cut or cut)


def budgeted(texts: Iterable[str], most: int) -> tuple[list[list[Sentence]], bool]:
    """The first sentences of each text, `most` in all, and whether there were more. Texts take turns: a short one
    keeps all of its sentences, and of long ones each has as many as the others."""
    found = [list(islice(split(text), SENTENCES + 1)) for text in texts]
    cut = any(len(some) > SENTENCES for some in found)
    found = [some[:SENTENCES] for some in found]
    left, counts = most, [0] * len(found)
    for turn in range(SENTENCES):
        for place, some in enumerate(found):
            if turn < len(some) and left:
                counts[place] += 1
                left -= 1
    cut = cut or any(count < len(some) for count, some in zip(counts, found, strict=True))
    return [some[:count] for count, some in zip(counts, found, strict=True)], cut


def _reasons(
    mine: Sequence[tuple[Sentence, str | None]], theirs: Sequence[Sentence], vectors: dict[str, Vector]
) -> list[Reason]:
    if not mine or not theirs:
        return []
    left, right = np.stack([vectors[one.text] for one, _ in mine]), np.stack([vectors[one.text] for one in theirs])
    return [
        Reason(score, mine[row][0], mine[row][1], theirs[column]) for row, column, score in closest(left, right, PAIRS)
    ]


def closest(left: Vectors, right: Vectors, count: int) -> list[tuple[int, int, float]]:
    """Row of [m, d], row of [n, d] and cosine of the best pair, then of the best among the rows left, and so on."""
    cosines = left @ right.T  # [m, n]; vectors have unit length
    pairs = []
    for _ in range(min(count, *cosines.shape)):
        row, column = (int(place) for place in np.unravel_index(np.argmax(cosines), cosines.shape))
        pairs.append((row, column, float(cosines[row, column])))
        cosines[row, :] = cosines[:, column] = -np.inf
    return pairs
