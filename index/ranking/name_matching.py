"""How far a question is a company's name, as people type one: in other cases, joined, split, cut short, misspelt."""

from __future__ import annotations

import re
from functools import lru_cache
from math import sqrt

from index.document import fold

# What follows a name in a register, and nobody types it or everybody does.
LEGAL_FORMS = frozenset(
    "ab ag asa bv co corp corporation gmbh inc incorporated kg kgaa limited llc lp ltd nv oyj plc pte pty sa sarl se "
    "spa".split()
)
# They tell no company from another, beside a word that does; "&" and "+" are read as "and" or "plus".
_FILLING = LEGAL_FORMS | frozenset(
    "and as company group holding holdings international platforms plus technologies technology the".split()
)
_WORD = re.compile(r"[^\W_]+")
# Of a legal form ("S.p.A.", "A/S") and of initials ("J.P."): letters that belong together.
_LETTERS = re.compile(r"\b(?:[^\W\d_][./]){1,3}[^\W\d_]\b\.?")
REMEMBERED = 1 << 16  # names
SHORTEST_MISSPELT = 5  # letters: among shorter names a letter more or less is another name

ALIKE = 1.0
MISSPELT = 0.9
IN_NAME, IN_QUESTION = 0.6, 0.2  # of one that is part of the other, where they are equally long


# Between the letters of a name as the stores keep it, which is folded.
_BETWEEN, _LETTER = "[^a-z0-9]*", "[a-z0-9]"
LONGEST = 60  # letters of a question that is looked for as a name


@lru_cache(REMEMBERED)
def core(name: str) -> tuple[str, ...]:
    """The words that tell a name from others, folded; all of them where none does."""
    words = _words(name)
    return tuple(word for word in words if word not in _FILLING) or tuple(words)


def likeness(question: str, name: str) -> float:
    """ALIKE or MISSPELT where they are one name, less where one is part of the other, 0 where they are not alike."""
    asked, named = core(question), core(name)
    left, right = "".join(asked), "".join(named)
    if not left or not right:
        return 0.0
    if left == right or _initials(question) == "".join(word[0] for word in named):
        return ALIKE
    if is_misspelt(left, right):
        return MISSPELT
    if len(left) < len(right):
        return IN_NAME * sqrt(len(left) / len(right)) if left in right and _is_run(left, named) else 0.0
    if right not in left or not _is_run(right, asked):
        return 0.0
    weight = IN_NAME if LEGAL_FORMS.intersection(_words(question)) else IN_QUESTION
    return weight * sqrt(len(right) / len(left))


def is_misspelt(left: str, right: str) -> bool:
    """One letter more, less, another, or two swapped; never the first, which people get right."""
    if left[:1] != right[:1] or abs(len(left) - len(right)) > 1 or min(len(left), len(right)) < SHORTEST_MISSPELT:
        return False
    shorter = min(len(left), len(right))
    start = next((place for place in range(shorter) if left[place] != right[place]), shorter)
    end = next((place for place in range(shorter - start) if left[-1 - place] != right[-1 - place]), shorter - start)
    rest = left[start : len(left) - end], right[start : len(right) - end]
    return max(map(len, rest)) <= 1 or (len(rest[0]) == 2 and rest[0] == rest[1][::-1])


def spellings(question: str) -> str:
    """A regular expression for folded names, from one of their words on, that begin with the question however it is
    joined or split; "" where it is no name. Both stores read it, and both find more than is alike."""
    letters = "".join(core(question))
    if not letters or len(letters) > LONGEST:
        return ""
    initials = _initials(question)
    begins = _BETWEEN.join(letters) + "([^a-z0-9].*)?"
    return f"{begins}|{f'{_LETTER}*[^a-z0-9]+'.join(initials)}{_LETTER}*" if initials else begins


def _initials(question: str) -> str:
    """Of "P&G": letters with nothing but an "&" between them. Without one they are a word as likely ("AI")."""
    words = core(question)
    return "".join(words) if "&" in question and len(words) > 1 and all(len(word) == 1 for word in words) else ""


def _is_run(joined: str, words: tuple[str, ...]) -> bool:
    """Whole words, one after the other."""
    return any(
        joined == "".join(words[first:last]) for first in range(len(words)) for last in range(first + 1, len(words) + 1)
    )


def _words(name: str) -> list[str]:
    folded = fold(name).replace("'", "").replace("\u2019", "")
    return _WORD.findall(_LETTERS.sub(lambda letters: re.sub(r"\W", "", letters[0]), folded))
