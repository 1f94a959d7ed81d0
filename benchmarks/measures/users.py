"""Load of many people at once: each asks, reads the result for a second, and asks the next."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from benchmarks.targets.service import Caller

PAUSE = (0.5, 1.5)  # seconds between an answer and the next question


@dataclass
class Crowd:
    """What became of their questions."""

    seconds: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)


Ask = Callable[[Caller, np.random.Generator], object]


def crowd(address: tuple[str, int], people: int, minutes: float, ask: Ask) -> Crowd:
    found, lock = Crowd(), threading.Lock()
    end = time.monotonic() + 60 * minutes

    def person(number: int) -> None:
        chance, caller = np.random.default_rng(number), Caller(address)
        time.sleep(chance.uniform(0, PAUSE[1]))  # nobody begins on the same second
        while time.monotonic() < end:
            began, error = time.perf_counter(), ""
            try:
                ask(caller, chance)
            except Exception as wrong:  # whatever it is, the person has no answer
                error, caller = f"{type(wrong).__name__}: {wrong}", Caller(address)
            with lock:
                found.seconds.append(time.perf_counter() - began)
                found.errors.update([error] if error else [])
            time.sleep(chance.uniform(*PAUSE))
        caller.close()

    with ThreadPoolExecutor(people) as pool:
        list(pool.map(person, range(people)))
    return found
