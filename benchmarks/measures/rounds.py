"""Measures contestants in turns: a figure is the median over rounds of the ratio within a round."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from tqdm import tqdm


def alternate(contestants: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, np.ndarray]:
    """What each gave in each round [rounds]; every other round has them in reverse, so that no one always follows."""
    given: dict[str, list[float]] = {name: [] for name in contestants}
    for number in tqdm(range(rounds), desc="rounds", unit="round", disable=None):
        for name in sorted(contestants, reverse=bool(number % 2)):
            given[name].append(contestants[name]())
    return {name: np.array(values) for name, values in given.items()}


def row(
    unit: str,
    ours: Sequence[float] | np.ndarray,
    theirs: Sequence[float] | np.ndarray,
    least: float | None = None,
    most: float | None = None,
) -> dict:
    """One line of the table, from the figures of each round [rounds]; without a bar it is for information only."""
    ratios = np.asarray(ours) / np.asarray(theirs)
    ratio = round(float(np.median(ratios)), 3)
    figures = {
        "ours": round(float(np.median(ours)), 1),
        "theirs": round(float(np.median(theirs)), 1),
        "unit": unit,
        "ratio": ratio,
        "from": round(float(ratios.min()), 3),
        "to": round(float(ratios.max()), 3),
    }
    if least is not None:
        return {**figures, "bar": f">= {least:g}", "met": "yes" if ratio >= least else "no"}
    if most is not None:
        return {**figures, "bar": f"<= {most:g}", "met": "yes" if ratio <= most else "no"}
    return figures
