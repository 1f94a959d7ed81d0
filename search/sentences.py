"""Where the sentences of a description begin and end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# A full stop with what closes around it, the stops of Chinese and Japanese, an empty line, a line that begins an item.
_STOP = re.compile(r"[.!?…]+[\"'”’»)\]]*(?=\s)|[。！？]+[」』）”]*|\n\s*\n|\n(?=\s*[-*•–·])")
_LAST_WORD = re.compile(r"[\w.&-]+$")
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
    """In order; blanks around a sentence belong to none, and what has no letter or digit is no sentence."""
    start = 0
    for end in [*(match.end() for match in _STOP.finditer(text) if _ends(text, match)), len(text)]:
        part = text[start:end]
        first = start + len(part) - len(part.lstrip())
        stripped = part.strip()
        if any(letter.isalnum() for letter in stripped):
            yield Sentence(stripped, first, first + len(stripped))
        start = end


def _ends(text: str, stop: re.Match[str]) -> bool:
    """Not after an abbreviation or an initial, nor where the next word goes on in small letters."""
    if not stop[0].startswith("."):
        return True
    following = text[stop.end() : stop.end() + 20].lstrip("\"'“‘«([ \t\r\n")
    if following[:1].islower():
        return False
    word = _LAST_WORD.search(text, max(0, stop.start() - 20), stop.start())
    if word is None:
        return True
    name = word[0].casefold().strip(".")
    return name not in _ABBREVIATIONS and not (len(name) == 1 and name.isalpha())
