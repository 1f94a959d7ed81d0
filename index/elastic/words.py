"""Text as the words it is found by, for Elasticsearch: made here, so that every build of it finds the same.

Folding and stemming are analysers that not every distribution has, and a query must be cut as the text was.
"""

from __future__ import annotations

import re
from itertools import islice

from index.document import fold

# Chinese, Japanese and Korean are written without spaces: each character is a word.
_WIDE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_WIDE}]|[^\W_{_WIDE}]+(?:'[^\W_{_WIDE}]+)*")
# They match nearly every description and tell none from another; in a name they may be all there is ("The It Company").
STOP_WORDS = frozenset(
    "a an and are as at be by for from has in into is it its of on or such that the their then there these they this "
    "to was which will with".split()
)
QUERY_WORDS = 300  # each is a clause in two fields, and Elasticsearch limits clauses
START_LENGTH = 100
START_WORDS = 20


def words(text: str) -> list[str]:
    """Folded, and without the ending of a plural."""
    return [_singular(word.split("'")[0] if word.endswith("'s") else word) for word in _WORD.findall(fold(text))]


def telling_words(text: str) -> list[str]:
    return [word for word in words(text) if word not in STOP_WORDS]


def query_words(text: str) -> str:
    return " ".join(islice(dict.fromkeys(words(text)), QUERY_WORDS))


def starts(name: str) -> list[str]:
    """The folded name from each of its words on: what someone types is the beginning of one of these."""
    parts = fold(name).split()
    return [" ".join(parts[first:])[:START_LENGTH] for first in range(min(len(parts), START_WORDS))]


def _singular(word: str) -> str:
    """After Harman's rules ("How effective is suffixing?", 1991), which seldom join what should be apart."""
    if len(word) < 4 or not word.endswith("s") or word.endswith(("us", "ss")):
        return word
    if word.endswith("ies") and not word.endswith(("eies", "aies")):
        return word[:-3] + "y"
    return word[:-2] if word.endswith(("sses", "xes", "shes")) else word[:-1]
