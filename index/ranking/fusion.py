"""Several rankings of companies as one: the first of them by how much each says, those behind by their ranks.

Reciprocal rank fusion alone knows nothing but ranks: the best of the words counts as much where one common word was
found as where ten rare ones were. Short questions lost the right company that way, long ones gained by it. Here the
scores are added up as they are: a cosine is bounded, and a BM25 score grows with every word found and with its rarity,
so that a long question is decided by its words and a short one by its meaning. Both stores score words alike (BM25 with
the same constants).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from index.ranking.analysis import QUERY_WORDS, telling_words
from index.ranking.name_matching import MISSPELT, core, likeness

# Cormack, Clarke and Büttcher, SIGIR 2009: flat enough that being in both rankings outweighs leading one.
DAMPING = 60

# So many by meaning and so many by words are looked at for the first pages, whatever their size: pages that follow each
# other are cut from one list. Further pages go on by ranks, and as deep as this.
POOL = 150
DEEPEST_RANK = 2000

# What each is worth in cosines, chosen on the development half of examples/questions (`python -m benchmarks questions`
# measures both halves). A word score of 0.005 to 0.015 and a label of 0.1 to 0.4 find nearly the same.
WORD_SCORE = 0.01
# Industry and tags are the words somebody chose to tell what a company is. Of all the question's words: the share that
# is among them, and the share that makes up whole ones ("food delivery", and not "fast food" with "delivery").
SOME_LABEL, WHOLE_LABEL = 0.2, 0.2
LABEL_WORDS = 4
# More than all else can come to; a question of many words is no name.
SAME_NAME = 100.0
NAME_WORDS = 8
REMEMBERED = 1 << 14  # labels


@dataclass(frozen=True, slots=True)
class Candidate:
    """What is looked at of a company before it is known to be shown."""

    id: str
    name: str
    labels: tuple[str, ...]  # industry and tags
    score: float = 0.0  # a cosine, or that of the words


def blend(
    question: str, nearest: Sequence[Candidate], worded: Sequence[Candidate], named: Sequence[Candidate] = ()
) -> list[str]:
    """Ids of all candidates, the best first. Who is not among the nearest is taken to be as far as the last of them."""
    found = {one.id: one for one in (*named, *worded, *nearest)}
    cosines, words = ({one.id: one.score for one in some} for some in (nearest, worded))
    farthest = min(cosines.values(), default=0.0)
    labels, names = _Labels(question), _names(question, found.values(), bool(worded))
    scores = {
        id: cosines.get(id, farthest) + WORD_SCORE * words.get(id, 0.0) + labels.worth(one.labels) + names.get(id, 0.0)
        for id, one in found.items()
    }
    return sorted(scores, key=lambda id: (-scores[id], id))


def fuse(rankings: Sequence[Sequence[str]], k: int) -> list[tuple[str, float]]:
    """The `k` best ids with their scores, the sum of 1 / (DAMPING + rank) over the rankings that hold them."""
    scores: dict[str, float] = {}
    for ranking in rankings:
        for rank, id in enumerate(dict.fromkeys(ranking), start=1):  # an id counts once a ranking, where it is best
            scores[id] = scores.get(id, 0.0) + 1 / (DAMPING + rank)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:k]


def may_be_a_name(question: str) -> bool:
    return len(question.split()) <= NAME_WORDS


def _names(question: str, candidates: Iterable[Candidate], has_words: bool) -> dict[str, float]:
    """What the names add. A part that several have tells none of them from another ("steel"), and is divided.

    `has_words`: companies have words of the question. A single word that is one ("shelf") is no misspelling (of Shell).
    """
    if not may_be_a_name(question):
        return {}
    found = {one.id: likeness(question, one.name) for one in candidates}
    spelt = has_words and len(core(question)) == 1
    found = {id: alike for id, alike in found.items() if alike and not (alike == MISSPELT and spelt)}
    sharing = sum(alike < MISSPELT for alike in found.values())
    return {id: SAME_NAME if alike >= MISSPELT else alike / sharing for id, alike in found.items()}


class _Labels:
    """Of a question: which of its words are labels, joined or apart ("co-working" is "coworking")."""

    def __init__(self, question: str):
        words = telling_words(question)[:QUERY_WORDS]
        self._count = len(words)
        self._places: dict[str, int] = {}  # of words joined: a bit for each that is in it
        for length in range(1, LABEL_WORDS + 1):
            for first in range(len(words) - length + 1):
                joined = "".join(words[first : first + length])
                self._places[joined] = self._places.get(joined, 0) | ((1 << length) - 1) << first

    def worth(self, labels: Sequence[str]) -> float:
        if not self._count:
            return 0.0
        some = whole = 0
        for label in labels:
            joined, words = _stems(label)
            whole |= self._places.get(joined, 0)
            for word in words:
                some |= self._places.get(word, 0)
        some |= whole
        if not some:
            return 0.0
        return (SOME_LABEL * some.bit_count() + WHOLE_LABEL * whole.bit_count()) / self._count


@lru_cache(REMEMBERED)
def _stems(label: str) -> tuple[str, tuple[str, ...]]:
    words = telling_words(label)
    return "".join(words), tuple(words)
