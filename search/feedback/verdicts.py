"""Combines the answers of many people into one verdict a pair of companies."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from search.feedback.store import NOT_SIMILAR, SIMILAR, UNDO, Answer, Record, Shown, is_anonymous

QUERY = "query:"  # what was typed takes part as a company that has a description alone

Pair = tuple[str, str]  # in the order of the alphabet: likeness has no direction


@dataclass
class Vote:
    """What one caller says of a pair: the newest counts, and the first says when it came."""

    first: int  # microseconds
    at: int  # microseconds
    said: str


Cast = dict[tuple[Pair, str], Vote]  # by pair and caller: a caller has one vote on a pair, however often it answers


@dataclass
class Verdicts:
    """Pairs by what is known of them, each in one of the sets only."""

    similar: set[Pair] = field(default_factory=set)
    not_similar: set[Pair] = field(default_factory=set)
    unlabelled: set[Pair] = field(default_factory=set)
    tied: set[Pair] = field(default_factory=set)  # as many say yes as no: nobody knows
    outvoted: set[Pair] = field(default_factory=set)  # decided, but not by all alike
    anonymous: set[Pair] = field(default_factory=set)  # decided or tied, and nobody with a key has a vote on it
    votes: dict[Pair, dict[str, str]] = field(default_factory=dict)  # what each caller says, less what is capped
    anchors: dict[Pair, set[str]] = field(default_factory=dict)  # which of the two was asked about
    texts: dict[str, str] = field(default_factory=dict)  # of queries, by the name they have in pairs
    answers: Counter[str] = field(default_factory=Counter)  # by caller
    capped: Counter[str] = field(default_factory=Counter)  # votes by caller that do not count: it had too many
    undone: int = 0
    without_anchor: int = 0  # answers on what was asked by several things at once
    newest: int = 0  # answer, microseconds


def verdicts(records: Iterable[Record], anonymous_pairs: int = 0) -> Verdicts:
    """Of one caller the newest answer on a pair counts, between callers the majority; where callers with a key have a
    vote, theirs alone. A caller without one has `anonymous_pairs` votes, 0 for any number."""
    found, cast, seen = Verdicts(), Cast(), set[Pair]()
    for record in records:
        if isinstance(record, Shown):
            seen |= _shown_pairs(record, found.texts)
            continue
        found.answers[record.who] += 1
        found.newest = max(found.newest, record.at)
        left = _anchor(record, found.texts)
        if left is None or left == record.candidate:
            found.without_anchor += 1
            continue
        key = (_pair(left, record.candidate), record.who)
        found.anchors.setdefault(key[0], set()).add(left)
        vote = cast.setdefault(key, Vote(record.at, record.at, record.answer))
        vote.first = min(vote.first, record.at)
        if record.at >= vote.at:
            vote.at, vote.said = record.at, record.answer
    _count(found, cast, anonymous_pairs)
    for pair, votes in found.votes.items():
        _decide(found, pair, votes)
    found.unlabelled = seen - found.similar - found.not_similar - found.tied
    return found


def deciding(votes: dict[str, str]) -> dict[str, str]:
    """Those of callers with a key, or of all where no such caller has one."""
    return {who: said for who, said in votes.items() if not is_anonymous(who)} or votes


def _count(found: Verdicts, cast: Cast, anonymous_pairs: int) -> None:
    """The first pairs of a caller count: what it floods the store with later takes no place of theirs."""
    counted = Counter[str]()
    for (pair, who), vote in sorted(cast.items(), key=lambda item: (item[1].first, item[0])):
        if vote.said == UNDO:
            found.undone += 1
        elif is_anonymous(who) and anonymous_pairs and counted[who] >= anonymous_pairs:
            found.capped[who] += 1
        else:
            counted[who] += 1
            found.votes.setdefault(pair, {})[who] = vote.said


def _decide(found: Verdicts, pair: Pair, votes: dict[str, str]) -> None:
    counts = Counter(deciding(votes).values())
    yes, no = counts[SIMILAR], counts[NOT_SIMILAR]
    (found.tied if yes == no else found.similar if yes > no else found.not_similar).add(pair)
    if yes != no and yes and no:
        found.outvoted.add(pair)
    if all(map(is_anonymous, votes)):
        found.anonymous.add(pair)


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
