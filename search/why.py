"""Why a company is like another: the sentences of both that are closest to each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from index.document import Document, Vector
from search.encoder import Encoder, Vectors
from search.sentences import Sentence, split

PAIRS = 2
SENTENCES = 40  # of one description: the rest says little, and each has to be encoded


@dataclass(frozen=True)
class Passage:
    """A text to be explained by: a company's description, or what was typed."""

    text: str
    id: str | None = None


@dataclass(frozen=True)
class Reason:
    score: float  # cosine
    mine: Sentence
    of: str | None  # the company that `mine` is from
    theirs: Sentence


def explain(
    encoder: Encoder, passages: Sequence[Passage], companies: Sequence[Document], model: str
) -> list[list[Reason]]:
    """Of each company the best pairs, the closest first; a sentence is in one pair at most."""
    mine = [(sentence, passage.id) for passage in passages for sentence in _sentences(passage.text)]
    theirs = [_sentences(company.description) for company in companies]
    texts = [sentence.text for sentence, _ in mine] + [sentence.text for some in theirs for sentence in some]
    vectors = encoder.vectors(texts, model)  # one request for all
    mine = [(sentence, id) for sentence, id in mine if sentence.text in vectors]
    return [_reasons(mine, [one for one in some if one.text in vectors], vectors) for some in theirs]


def _sentences(text: str) -> list[Sentence]:
    return list(islice(split(text), SENTENCES))


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
