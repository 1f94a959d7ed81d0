"""The result of a soak: a table of figures, and a plot of lag, memory and faults over time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.soak.check.accounting import accounted
from benchmarks.soak.check.findings import KINDS, Finding, Reply
from benchmarks.soak.check.history import History
from benchmarks.soak.faults import Fault

FLAT = 0.05  # by which memory of the last quarter may be above that of the second
YOUNG_SECONDS = 45.0  # a process that has just started is not full-grown
AFTER_SECONDS = 8.0  # a fault is still felt so long after it has ended
WRONG_MODEL = "wrong_model"  # as the search service calls it
TOLD = 30  # findings of a kind in the table's file
COLOURS = ("#3366aa", "#cc6633", "#559944", "#aa3377", "#886600", "#5588bb")


@dataclass
class Soak:
    """All that was seen."""

    began: float
    ended: float
    history: History
    faults: list[Fault]
    replies: list[Reply]
    lags: list[tuple[float, float, str]]
    memory: list[tuple[float, str, float, int]]
    findings: list[Finding]
    quiet: list[tuple[float, float]] = field(default_factory=list)
    notes: list[tuple[float, str]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)  # kinds that this machine does not allow

    @property
    def counts(self) -> Counter[str]:
        return Counter(finding.kind for finding in self.findings)


def figures(soak: Soak) -> dict[str, object]:
    kinds = Counter(fault.kind for fault in soak.faults)
    flat = memory_of(soak)
    unexplained = unexcused(soak)
    failed = [reply for reply in soak.replies if reply.failure]
    counts = {kind: soak.counts[kind] for kind in KINDS}
    in_quiet = [lag for sent, lag, _ in soak.lags if any(first <= sent <= last for first, last in soak.quiet)]
    met = not any(counts.values()) and not unexplained and all(grown <= FLAT for *_, grown in flat.values())
    return {
        "minutes": round((soak.ended - soak.began) / 60, 1),
        "records": len(soak.history.records),
        **{f"records, {end}": number for end, number in accounted(soak.history).items()},
        "faults": len(soak.faults),
        "kinds of faults": len(kinds),
        **counts,
        "faults whose own command failed": sum(bool(fault.failure) for fault in soak.faults),
        "parts that ended by themselves": sum("ended by itself" in what for _, what in soak.notes),
        "searches": len(soak.replies),
        "failed searches, while a part was away": len(failed) - len(unexplained),
        "failed searches, without such a reason": len(unexplained),
        "lag p50, p99 s": spread([lag for _, lag, _ in soak.lags]),
        "lag in quiet times p50, p99 s": spread(in_quiet),
        **{f"MB {name}, second and last quarter": f"{a:.0f}, {b:.0f} ({g:+.1%})" for name, (a, b, g) in flat.items()},
        **{f"fault: {kind}": number for kind, number in sorted(kinds.items())},
        **({"not possible here": ", ".join(soak.skipped)} if soak.skipped else {}),
        "bar": f"0 of each finding, every failed search explained, memory within {FLAT:.0%}",
        "met": "yes" if met else "no",
    }


def spread(seconds: Sequence[float]) -> str:
    return " ".join(f"{value:.1f}" for value in np.quantile(seconds, [0.5, 0.99])) if len(seconds) else ""


def memory_of(soak: Soak) -> dict[str, tuple[float, float, float]]:
    """Of each part: median MB in the second and in the last quarter, and by how much the last is above."""
    quarter = (soak.ended - soak.began) / 4
    seen: dict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for at, name, age, size in soak.memory:
        place = int((at - soak.began) // quarter)
        if age >= YOUNG_SECONDS and place in (1, 3):
            seen[name][place == 3].append(size)
    medians = {
        name: (float(np.median(before)) / 1e6, float(np.median(after)) / 1e6)
        for name, (before, after) in sorted(seen.items())
        if before and after
    }
    return {name: (before, after, after / before - 1) for name, (before, after) in medians.items()}


def unexcused(soak: Soak) -> list[Reply]:
    """Failed searches with no fault near them that would explain it; a new model explains none."""
    excuses = [(fault.began, fault.ended + AFTER_SECONDS) for fault in soak.faults if fault.excuses]

    def is_excused(reply: Reply) -> bool:
        near = any(first <= reply.answered and reply.asked <= last for first, last in excuses)
        return near and WRONG_MODEL not in reply.failure

    return [reply for reply in soak.replies if reply.failure and not is_excused(reply)]


def evidence(soak: Soak) -> list[str]:
    """Lines for whoever looks into it: findings of each kind, failed searches, what parts and operators said."""
    lines = []
    for kind in KINDS:
        found = [finding for finding in soak.findings if finding.kind == kind]
        lines += [f"{kind}: {finding.id}: {finding.evidence}" for finding in found[:TOLD]]
        lines += [f"{kind}: and {len(found) - TOLD} more"] if len(found) > TOLD else []
    lines += [f"failed search at {one.asked:.1f}: {one.failure}" for one in unexcused(soak)[:TOLD]]
    lines += [
        f"fault {fault.kind} at {fault.began:.1f} failed: {fault.failure}" for fault in soak.faults if fault.failure
    ]
    return lines + [f"{at:.1f}: {what}" for at, what in soak.notes]


def draw(soak: Soak, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (lag, memory, faults) = pyplot.subplots(
        3, 1, sharex=True, figsize=(14, 12), layout="constrained", height_ratios=(2, 2, 3)
    )
    _draw_lag(lag, soak)
    _draw_memory(memory, soak)
    _draw_faults(faults, soak)
    for axes in (lag, memory, faults):
        for first, last in soak.quiet:
            axes.axvspan((first - soak.began) / 60, (last - soak.began) / 60, color="#eeeeee", zorder=0)
        axes.spines[["top", "right"]].set_visible(False)
    faults.set_xlabel("minutes; quiet times are grey")
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def _draw_lag(axes, soak: Soak) -> None:
    for colour, way in zip(COLOURS, sorted({way for *_, way in soak.lags}), strict=False):
        points = [((sent - soak.began) / 60, max(lag, 0.05)) for sent, lag, one in soak.lags if one == way]
        axes.scatter(*zip(*points, strict=True), s=5, color=colour, label=f"by {way}", alpha=0.5)
    axes.set_yscale("log")
    axes.set_ylabel("seconds until found")
    counts = ", ".join(f"{soak.counts[kind]} {kind}" for kind in KINDS)
    axes.set_title(f"{len(soak.history.records)} records, {len(soak.faults)} faults: {counts}", loc="left")
    if soak.lags:
        axes.legend(frameon=False, ncols=4)


def _draw_memory(axes, soak: Soak) -> None:
    for colour, name in zip(COLOURS, sorted({name for _, name, _, _ in soak.memory}), strict=False):
        points = [((at - soak.began) / 60, size / 1e6) for at, one, _, size in soak.memory if one == name]
        axes.plot(*zip(*points, strict=True), color=colour, label=name, linewidth=1.2)
    axes.set_ylabel("MB resident")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, ncols=6)


def _draw_faults(axes, soak: Soak) -> None:
    kinds = sorted({fault.kind for fault in soak.faults}, reverse=True)
    for row, kind in enumerate(kinds):
        spans = [
            ((fault.began - soak.began) / 60, max((fault.ended - fault.began) / 60, 0.03))
            for fault in soak.faults
            if fault.kind == kind
        ]
        axes.broken_barh(spans, (row - 0.35, 0.7), color=COLOURS[0])
    failed = [(reply.asked - soak.began) / 60 for reply in soak.replies if reply.failure]
    axes.scatter(failed, [len(kinds)] * len(failed), s=8, color="#cc3333")
    axes.set_yticks(range(len(kinds) + 1), [*kinds, "failed searches"])
