"""Records as they come over a day: more by day than by night, a few deliveries in bulk, and chance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from infra.cost.day.outages import DAY_SECONDS

BUSIEST = 14 * 3600  # second of the day


@dataclass(frozen=True)
class Rhythm:
    """How a day's records are spread. `swing` 0 is evenly, 1 leaves the night empty; each burst brings `burst_share` of
    the day within `burst_seconds`."""

    swing: float = 0.6
    bursts: int = 3
    burst_share: float = 0.02
    burst_seconds: int = 600

    def __post_init__(self) -> None:
        if not (0 <= self.swing <= 1 and self.bursts >= 0 and 0 <= self.bursts * self.burst_share <= 1):
            raise ValueError("a swing from 0 to 1, and bursts of at most the whole day, are expected")


EVEN = Rhythm(swing=0, bursts=0)


def expected(records_a_day: float, seconds: int, rhythm: Rhythm, chance: np.random.Generator) -> np.ndarray:
    """float [seconds]: records a second that are to be expected; every day is like the first."""
    time = np.arange(DAY_SECONDS)
    usual = 1 + rhythm.swing * np.cos(2 * np.pi * (time - BUSIEST) / DAY_SECONDS)  # its mean is 1
    shape = usual / DAY_SECONDS * (1 - rhythm.bursts * rhythm.burst_share)
    for begins in chance.integers(0, DAY_SECONDS - rhythm.burst_seconds, rhythm.bursts):
        shape[begins : begins + rhythm.burst_seconds] += rhythm.burst_share / rhythm.burst_seconds
    return np.resize(records_a_day * shape, seconds)


def arrivals(records_a_day: float, seconds: int, rhythm: Rhythm, seed: int) -> np.ndarray:
    """Whole records in each second [seconds], at random around what is to be expected."""
    chance = np.random.default_rng(seed)
    return chance.poisson(expected(records_a_day, seconds, rhythm, chance)).astype(float)
