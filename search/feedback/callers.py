"""How much each caller contributed to the labels that were made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

from search.feedback.store import is_anonymous
from search.feedback.verdicts import Pair, Verdicts, deciding

TOLD = 20  # callers in the report for people


@dataclass(frozen=True)
class Part:
    """What one caller answered, and what became of it."""

    caller: str
    has_key: bool
    answers: int
    alone: int  # pairs that have their label by this caller's vote and nobody else's
    overruled: int  # pairs whose label says otherwise
    capped: int  # pairs on which its vote does not count


def parts(found: Verdicts, pairs: Mapping[Pair, str], curated: Container[Pair]) -> list[Part]:
    """Of every caller, those who decided most first. `curated` pairs have their label from elsewhere."""
    alone, overruled = Counter[str](), Counter[str]()
    for pair, votes in found.votes.items():
        label = pairs.get(pair)
        if not label:  # tied, or left out
            continue
        overruled.update(who for who, said in votes.items() if said != label)
        winners = [who for who, said in deciding(votes).items() if said == label]
        if len(winners) == 1 and pair not in curated:
            alone[winners[0]] += 1
    made = [
        Part(who, not is_anonymous(who), number, alone[who], overruled[who], found.capped[who])
        for who, number in found.answers.items()
    ]
    return sorted(made, key=lambda part: (-part.alone, -part.answers, part.caller))


def table(made: Sequence[Part]) -> Iterator[str]:
    """For people: a line each, and no more lines than are read."""
    width = max([len("caller"), *(len(part.caller) for part in made[:TOLD])])
    yield f"{'caller':{width}}  answers  decided alone  overruled  capped"
    for part in made[:TOLD]:
        yield f"{part.caller:{width}}  {part.answers:7,}  {part.alone:13,}  {part.overruled:9,}  {part.capped:6,}"
    if len(made) > TOLD:
        yield f"and {len(made) - TOLD:,} more callers; --callers FILE has them all"
