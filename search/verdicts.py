"""From what many people answered to one verdict on a pair of companies."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from search.feedback import NOT_SIMILAR, SIMILAR, UNDO, Answer, Record, Shown

QUERY = "query:"  # what was typed takes part as a company that has a description alone

Pair = tuple[str, str]  # in the order of the alphabet: likeness has no direction


@dataclass
class Verdicts:
    """Pairs by what is known of them, each in one of the sets only."""

    similar: set[Pair] = field(default_factory=set)
    not_similar: set[Pair] = field(default_factory=set)
    unlabelled: set[Pair] = field(default_factory=set)
    tied: set[Pair] = field(default_factory=set)  # as many say yes as no: nobody knows
    outvoted: set[Pair] = field(default_factory=set)  # decided, but not by all alike
    texts: dict[str, str] = field(default_factory=dict)  # of queries, by the name they have in pairs
    people: int = 0
    answers: int = 0
    undone: int = 0
    without_anchor: int = 0  # answers on what was asked by several things at once


def verdicts(records: Iterable[Record]) -> Verdicts:
    """Of one person the newest answer on a pair counts, between persons the majority."""
    found, newest, seen = Verdicts(), dict[tuple[Pair, str], tuple[int, str]](), set[Pair]()
    people: set[str] = set()
    for record in records:
        if isinstance(record, Shown):
            seen |= _shown_pairs(record, found.texts)
            continue
        found.answers += 1
        people.add(record.who)
        left = _anchor(record, found.texts)
        if left is None or left == record.candidate:
            found.without_anchor += 1
            continue
        key = (_pair(left, record.candidate), record.who)
        if key not in newest or record.at >= newest[key][0]:
            newest[key] = (record.at, record.answer)
    found.people = len(people)
    _decide(found, newest)
    found.unlabelled = seen - found.similar - found.not_similar - found.tied
    return found


def _decide(found: Verdicts, newest: dict[tuple[Pair, str], tuple[int, str]]) -> None:
    votes: dict[Pair, Counter[str]] = {}
    for (pair, _), (_, said) in newest.items():
        if said == UNDO:
            found.undone += 1
        else:
            votes.setdefault(pair, Counter())[said] += 1
    for pair, counts in votes.items():
        yes, no = counts[SIMILAR], counts[NOT_SIMILAR]
        (found.tied if yes == no else found.similar if yes > no else found.not_similar).add(pair)
        if yes != no and yes and no:
            found.outvoted.add(pair)


def _shown_pairs(shown: Shown, texts: dict[str, str]) -> set[Pair]:
    """None where several things were asked at once: then no one company was the anchor."""
    if shown.unlike or len(shown.like) + bool(shown.text) != 1:
        return set()
    left = shown.like[0] if shown.like else _query(shown.text or "", texts)
    return {_pair(left, right) for right in shown.companies if right != left}


def _anchor(answer: Answer, texts: dict[str, str]) -> str | None:
    if answer.anchor is not None and not answer.text:
        return answer.anchor
    return _query(answer.text, texts) if answer.text and answer.anchor is None else None


def _query(text: str, texts: dict[str, str]) -> str:
    plain = " ".join(text.split())
    name = QUERY + hashlib.sha256(plain.encode(errors="surrogatepass")).hexdigest()[:16]
    texts[name] = plain
    return name


def _pair(one: str, other: str) -> Pair:
    return (one, other) if one <= other else (other, one)
