"""Times at which a part is away: `serving@10:00+20m`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from common.errors import InputError

PARTS = ("serving", "elasticsearch")
DEFAULT = ("serving@10:00+10m", "elasticsearch@15:00+20m")
NONE = "none"
DAY_SECONDS = 86_400
_UNITS = {"s": 1, "m": 60, "h": 3600}
_GIVEN = re.compile(
    r"(?P<part>[a-z]+)@(?P<hour>\d{1,2}):(?P<minute>\d{2})\+(?P<length>\d{1,6})(?P<unit>[smh])", re.ASCII
)


@dataclass(frozen=True)
class Outage:
    """From a second of the day on, for so many seconds."""

    part: str
    begins: int
    seconds: int


def parse(given: str) -> Outage:
    match = _GIVEN.fullmatch(given)
    if not match or match["part"] not in PARTS or int(match["hour"]) > 23 or int(match["minute"]) > 59:
        raise InputError(f"--outage {given!r} is not like serving@10:00+20m; parts are {', '.join(PARTS)}")
    seconds = int(match["length"]) * _UNITS[match["unit"]]
    begins = 3600 * int(match["hour"]) + 60 * int(match["minute"])
    if not 0 < seconds <= DAY_SECONDS - begins:
        raise InputError(f"--outage {given!r} does not end within the day")
    return Outage(match["part"], begins, seconds)


def parse_all(given: Sequence[str]) -> tuple[Outage, ...]:
    if NONE in given and len(given) > 1:
        raise InputError(f"--outage {NONE} stands alone, or not at all")
    return tuple(parse(one) for one in given if one != NONE)


def away(outages: Sequence[Outage], seconds: int) -> np.ndarray:
    """bool [seconds]: whether nothing can be written, since some part is away."""
    gone = np.zeros(seconds, bool)
    for outage in outages:
        gone[outage.begins : outage.begins + outage.seconds] = True
    return gone
