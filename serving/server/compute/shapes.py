"""Which shapes a run of texts may have: few, so that each can be compiled, and near enough to what traffic sends.

Texts wait by coarse lengths, so that they find others to share a run with; the run is then as long as its longest text,
but for a fine step. Whoever sends many sorts them by length, and such runs hold hardly any padding.
"""

from __future__ import annotations

from bisect import bisect_left

# One core encodes this many padded tokens at a time: eight long texts. More gains nothing, and others wait longer.
TOKENS_PER_RUN = 1024
LENGTHS = (8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
ROWS = (1, 4, 16, 64)
STEP, STEPS = 8, 16  # tokens; the longest runs have a coarser step, so that there are no more lengths than that
LEAST_FILL = 0.75  # a run is padded with empty rows up to the next size only when this much of it is texts


def padded_length(tokens: int, max_tokens: int) -> int:
    """The length that a text of so many tokens is padded to."""
    place = bisect_left(LENGTHS, tokens)
    return min(LENGTHS[place], max_tokens) if place < len(LENGTHS) else max_tokens


def run_length(longest: int, padded: int) -> int:
    """How long a run of texts is that all could be padded to `padded`, when the longest has so many tokens."""
    step = max(STEP, padded // STEPS)
    return min(padded, -(-longest // step) * step)


def capacity(length: int, max_texts: int) -> int:
    """How many texts of this padded length make a full run."""
    return max(1, min(max_texts, TOKENS_PER_RUN // length))


def row_sizes(capacity: int) -> list[int]:
    return [*(rows for rows in ROWS if rows < capacity), capacity]


def next_run(waiting: int, capacity: int) -> tuple[int, int]:
    """Of so many texts waiting: how many to take now, and how many rows the run then has."""
    if waiting >= capacity:
        return capacity, capacity
    sizes = row_sizes(capacity)
    above = sizes[bisect_left(sizes, waiting)]
    if waiting >= LEAST_FILL * above:
        return waiting, above
    below = max(size for size in sizes if size <= waiting)
    return below, below
