"""Holds a part of the answers out of training, for comparing models; remembers which answers a model was trained on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import NamedTuple

from search.feedback.store import NOT_SIMILAR, SIMILAR
from search.feedback.verdicts import Pair, Verdicts

SHARE = 0.2  # of what people asked about
SEED = "held out"


class Held(NamedTuple):
    """A pair that is left out of training, with the label that people gave it."""

    anchor: str
    candidate: str
    label: str


@dataclass(frozen=True)
class Answers:
    """What the answers were at a time. Whether others have come since is seen by the hash, of what they say in the
    end: neither an answer given twice nor one taken back at once makes new ones of them."""

    answers: int
    pairs: int
    newest: int  # microseconds
    sha256: str

    @classmethod
    def of(cls, found: Verdicts) -> Answers:
        said = [(*pair, SIMILAR) for pair in found.similar] + [(*pair, NOT_SIMILAR) for pair in found.not_similar]
        digest = hashlib.sha256(json.dumps(sorted(said)).encode()).hexdigest()
        return cls(found.answers.total(), len(said), found.newest, digest)

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1)


def hold_out(found: Verdicts, pairs: dict[Pair, str]) -> list[Held]:
    """All answers on some of what people asked about, as pairs have them: to hold single answers out would judge a
    model by lists that it has seen the rest of. Whether something is among them follows from its name alone, so that
    a later model is judged by what the former ones were not trained on either."""
    answered = {pair: pairs[pair] for pair in sorted(found.similar | found.not_similar) if pairs.get(pair)}
    held = _drawn({anchor for pair in answered for anchor in found.anchors[pair]})
    return [
        Held(anchor, _other(pair, anchor), label)
        for pair, label in answered.items()
        for anchor in sorted(found.anchors[pair] & held)
    ]


def without(pairs: dict[Pair, str], held: Iterable[Held]) -> dict[Pair, str]:
    """What is left for training: the held pairs are gone from it even where they were known before."""
    gone = {(min(one.anchor, one.candidate), max(one.anchor, one.candidate)) for one in held}
    return {pair: label for pair, label in pairs.items() if pair not in gone}


def _drawn(anchors: set[str]) -> set[str]:
    """Never all of them, and none only where there is but one."""
    place = {anchor: _place(anchor) for anchor in anchors}
    ranked = sorted(anchors, key=lambda anchor: (place[anchor], anchor))
    count = sum(place[anchor] < SHARE for anchor in anchors)
    return set(ranked[: min(max(count, 1), len(ranked) - 1)]) if ranked else set()


def _place(anchor: str) -> float:
    """From 0 to 1, by its name."""
    digest = hashlib.sha256(f"{SEED}:{anchor}".encode(errors="surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def _other(pair: Pair, anchor: str) -> str:
    return pair[1] if pair[0] == anchor else pair[0]
