"""From the live index to another one of its address: filled, brought up to date, checked, and live in one step.

Passes go on while others write. For the last one the live index is frozen, for as long as it takes to carry what a pass
leaves: whoever writes waits, and writes to the new one, or is told that its model is another. So all that was ever
acknowledged is in there. Then both are counted: where the new one has more, companies were deleted and purged on the
way, and are removed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext

from tqdm import tqdm

from common.errors import InputError
from index.base import Index, Status
from pipelines.reindex.move import Move, Pass

NEAREST = 10  # among which a company must be found: of vectors of few numbers, stores that round them miss the first
MISSED = 0.1  # share of a sample that may be: approximate search does not get to all, least of all among equal vectors
SAME = 0.99  # cosine; two texts as close as that find each other as well as themselves


class CheckFailed(InputError):
    """The new index is not what it should be; the address still answers from the former one."""


def swap(moving: Move, go: Callable[[], object], back: bool = False) -> Status:
    """Of the new index, as it went live by `go`. One that is gone `back` to may keep more than the live one has: what
    could not be carried from there once."""
    live, target = moving.live, moving.target
    mark = live.mark()
    if not back and target.status().newest_version is not None:  # begun before
        moving.prune()
    with nullcontext() if back else target.loading():
        done = _carry(moving, "encoding", None)
    sample = done.sample
    while True:
        mark, done = _catch_up(moving, mark, done)
        check(target, sample)
        with live.frozen() as holds:
            since, mark = mark, live.mark()
            done = _carry(moving, "last writes", since)
            status = agree(moving, back)
            if not holds():  # taken to be dead, and written to: once more
                continue
            go()
            if not holds():
                moving.carry(lambda _: None, mark, swapped=True)
            return status


def _catch_up(moving: Move, mark: int, done: Pass) -> tuple[int, Pass]:
    """As close behind those who write as passes get."""
    while True:
        since, mark = mark, moving.live.mark()
        before, done = done.written, _carry(moving, "catching up", since)
        if done.written <= moving.batch_size or done.written > before / 2:
            return mark, done


def agree(moving: Move, back: bool) -> Status:
    """Raises CheckFailed unless the target has what the frozen live index has, and nothing else."""
    for pruned in (False, True):
        there, here, missing = moving.live.status(), moving.target.status(), moving.missing()
        companies, tombstones = there.live - missing.companies, there.tombstones - missing.tombstones
        if (here.live, here.tombstones) == (companies, tombstones):
            return here
        # Without a purge nothing can have been deleted without a trace: the more was never carried from here.
        if back and not there.purged and here.live >= companies and here.tombstones >= tombstones:
            return here
        if not pruned:
            moving.prune()
    raise CheckFailed(
        f"{here.physical} holds {here.live:,} companies and {here.tombstones:,} tombstones, expected "
        f"{companies:,} and {tombstones:,}; nothing went live, the same command goes on"
    )


def check(target: Index, sample: list[str]) -> None:
    """Raises CheckFailed unless companies are found by their own vectors, but for the few that MISSED allows."""
    target.refresh()
    spec, companies, missed = target.spec(), target.get_many(sample), list[str]()
    for company in companies.values():
        assert company.embedding is not None  # only tombstones have none
        hits = target.nearest(company.embedding, NEAREST, model=spec.model)
        if not hits or (company.id not in [hit.document.id for hit in hits] and hits[0].score < SAME):
            found = f"{hits[0].document.id!r} at a cosine of {hits[0].score:.3f}" if hits else "nothing"
            missed.append(f"company {company.id!r} by its own vector, but {found}")
    if len(missed) > MISSED * len(companies):
        raise CheckFailed(
            f"{target.status().physical} does not find {missed[0]}, and so with {len(missed)} of {len(companies)} that "
            f"were looked for; nothing went live"
        )


def _carry(moving: Move, what: str, since: int | None) -> Pass:
    status = moving.live.status() if since is None else None
    total = status.live + status.tombstones if status else None
    with tqdm(total=total, unit="company", desc=what, file=sys.stderr, disable=None, leave=False) as bar:
        return moving.carry(bar.update, since)
