"""Splits a description into sentences, in linear time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

LOOKED_AT = 50_000  # characters of a text; what comes behind is read by nobody who asks why
LONGEST = 2_000  # characters of a sentence: more than a model reads of it

# A full stop with what closes around it, the stops of Chinese and Japanese, an empty line, a line that begins an item.
# A run of stops is looked at from its first alone and never given back in part, or a text of dots takes quadratic time.
_STOP = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’»)\]]*+(?=\s)|[。！？]++[」』）”]*+|\n\s*\n|\n(?=\s*[-*•–·])")
_LAST_WORD = re.compile(r"[\w.&-]+$")
_AROUND = 20  # characters before and behind a stop that say whether a sentence ends there
_ABBREVIATIONS = frozenset(
    "approx bros ca cf co corp dept dr e.g est etc fig gmbh i.e inc jr llc ltd mr mrs ms no nr plc prof s.a sr st u.k "
    "u.s vs".split()
)


@dataclass(frozen=True)
class Sentence:
    """`start` and `end` count Unicode characters of the text it is part of."""

    text: str
    start: int
    end: int


def split(text: str) -> Iterator[Sentence]:
    """In order, as they are asked for; blanks around a sentence belong to none, and what has no letter or digit is
    no sentence. A very long one is cut short."""
    text = text[:LOOKED_AT]
    start = 0
    for end in _ends(text):
        part = text[start:end]
        first = start + len(part) - len(part.lstrip())
        stripped = part.strip()[:LONGEST].rstrip()
        if any(letter.isalnum() for letter in stripped):
            yield Sentence(stripped, first, first + len(stripped))
        start = end


def _ends(text: str) -> Iterator[int]:
    for stop in _STOP.finditer(text):
        if _is_end(text, stop):
            yield stop.end()
    yield len(text)


def _is_end(text: str, stop: re.Match[str]) -> bool:
    """Not after an abbreviation or an initial, nor where the next word goes on in small letters."""
    if not text.startswith(".", stop.start()):
        return True
    following = text[stop.end() : stop.end() + _AROUND].lstrip("\"'“‘«([ \t\r\n")
    if following[:1].islower():
        return False
    word = _LAST_WORD.search(text, max(0, stop.start() - _AROUND), stop.start())
    if word is None:
        return True
    name = word[0].casefold().strip(".")
    return name not in _ABBREVIATIONS and not (len(name) == 1 and name.isalpha())
