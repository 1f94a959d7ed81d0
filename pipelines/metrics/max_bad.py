"""The bound on bad records above which a run fails: the flag --max_bad."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class MaxBad:
    """How many records may be bad in a run that ends well; without a bound, all but one."""

    share: float | None = None
    number: int | None = None

    def allows(self, bad: int, read: int) -> bool:
        if self.number is not None:
            return bad <= self.number
        return bad <= self.share * read if self.share is not None else not bad or bad < read

    def __str__(self) -> str:
        if self.number is not None:
            return f"{self.number:,}"
        return "all but one" if self.share is None else f"{100 * self.share:g}%"


ALL_BUT_ONE = MaxBad()


def max_bad(text: str) -> MaxBad:
    match = re.fullmatch(r"(\d+)|(\d*\.\d+)|(\d+(?:\.\d+)?)%", text, re.ASCII)
    if match and match[1]:
        return MaxBad(number=int(match[1]))
    share = float(match[2]) if match and match[2] else float(match[3]) / 100 if match else -1.0
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a share, such as 1% or 0.01, nor a number of records")
    return MaxBad(share)
