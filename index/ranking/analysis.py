"""Text as the words it is found by, for Elasticsearch: made here, so that every build of it finds the same.

Folding and stemming are analysers that not every distribution has, and a query must be cut as the text was.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice

from index.document import fold

# Chinese, Japanese and Korean are written without spaces: each character is a word.
_WIDE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_WIDE}]|[^\W_{_WIDE}]+(?:'[^\W_{_WIDE}]+)*")
_BETWEEN = {number: " " for number in range(128) if not chr(number).isalnum() and chr(number) != "'"}
# They match nearly every description and tell none from another; in a name they may be all there is ("The It Company").
STOP_WORDS = frozenset(
    "a an and are as at be by for from has in into is it its of on or such that the their then there these they this "
    "to was which will with".split()
)
QUERY_WORDS = 300  # each is a clause in two fields, and Elasticsearch limits clauses
START_LENGTH = 100
REMEMBERED = 1 << 16  # words, of each form
START_WORDS = 20


def words(text: str) -> list[str]:
    """Folded, and without the ending of a plural."""
    return _each(_stems, text)


def telling_words(text: str) -> list[str]:
    return _each(_telling, text)


def _each(form: _Forms, text: str) -> list[str]:
    return list(filter(None, map(form.__getitem__, _cut(text))))


def _cut(text: str) -> list[str]:
    """Words may still have an apostrophe at their ends."""
    text = text.replace("\u2019", "'").casefold()
    if not text.isascii():
        # Folding goes letter by letter, and most texts need it for a few words.
        text = " ".join(word if word.isascii() else fold(word) for word in text.split())
        if not text.isascii():
            return _WORD.findall(text)
    # The same as above, in a fourth of the time: it is a good part of what a document costs here.
    return text.replace("''", " ").translate(_BETWEEN).split()


def query_words(text: str) -> str:
    return " ".join(islice(dict.fromkeys(words(text)), QUERY_WORDS))


def starts(folded: str) -> list[str]:
    """A folded name from each of its words on: what someone types is the beginning of one of these."""
    parts = folded.split()
    return [" ".join(parts[first:])[:START_LENGTH] for first in range(min(len(parts), START_WORDS))]


class _Forms(dict[str, str]):
    """What becomes of a word, remembered: looked up in a third of the time that a cached function takes."""

    def __init__(self, form: Callable[[str], str]):
        super().__init__()
        self._form = form

    def __missing__(self, word: str) -> str:
        if len(self) >= REMEMBERED:
            self.clear()
        self[word] = found = self._form(word.strip("'"))
        return found


def _stem(word: str) -> str:
    """After Harman's rules ("How effective is suffixing?", 1991), which seldom join what should be apart."""
    word = word.removesuffix("'s")
    if len(word) < 4 or not word.endswith("s") or word.endswith(("us", "ss")):
        return word
    if word.endswith("ies") and not word.endswith(("eies", "aies")):
        return word[:-3] + "y"
    return word[:-2] if word.endswith(("sses", "xes", "shes")) else word[:-1]


def _telling_stem(word: str) -> str:
    return "" if word in STOP_WORDS or (stem := _stem(word)) in STOP_WORDS else stem


_stems, _telling = _Forms(_stem), _Forms(_telling_stem)
