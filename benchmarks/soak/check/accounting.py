"""Every record that was sent has one end: in the index, superseded, or a dead letter that says why."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from benchmarks.soak.check.findings import DUPLICATED, UNACCOUNTED, Finding, Letter, Run, delivery
from benchmarks.soak.check.history import History, Record


def check_letters(history: History, letters: Iterable[Letter], runs: Sequence[Run]) -> list[Finding]:
    """Each bad record has its letter, with the right reason, and no good one has any. Whoever reads a file again after
    it was killed writes its letters again; two by one process are one too many."""
    by_source: dict[str, list[Letter]] = defaultdict(list)
    for letter in letters:
        by_source[delivery(letter.source)].append(letter)
    findings = []
    for record in history.bad():
        given = by_source.pop(record.source, [])
        if not given:
            findings.append(Finding(UNACCOUNTED, record.source, f"{record} has no dead letter"))
        wrong = [letter for letter in given if record.reason not in letter.reason]
        if wrong:
            findings.append(Finding(UNACCOUNTED, record.source, f"{record} died of {wrong[0].reason!r}"))
        for run in runs:
            here = [letter for letter in given if run.way == record.way and run.began <= letter.at <= run.ended]
            if len(here) > 1:
                findings.append(Finding(DUPLICATED, record.source, f"{record} has {len(here)} letters of one process"))
    good = {record.source: record for record in history.records if record.document}
    for source, given in by_source.items():
        if source.partition(",")[0] in history.half_files:
            continue
        who = str(good[source]) if source in good else "a delivery that nobody made"
        findings.append(Finding(UNACCOUNTED, source, f"{who} became a dead letter: {given[0].reason!r}"))
    return findings


def accounted(history: History) -> dict[str, int]:
    """How the records ended, by the history's own account."""
    winners = {id: history.winner(id) for id in history.ids()}
    ends: Counter[str] = Counter()
    for record in history.records:
        wanted: Record | None = winners.get(record.id)
        if record.document is None:
            ends["dead letter"] += 1
        elif wanted and record.order == wanted.order:
            ends["in the index"] += 1
        else:
            ends["superseded"] += 1
    return dict(ends)
