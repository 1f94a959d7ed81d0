"""What several tests train on: three made-up trades with a few words each, so that a tiny encoder learns in seconds."""

from pathlib import Path

import numpy as np

TRADES = {
    "banking": "bank loans credit savings money accounts",
    "brewing": "beer ale lager hops brewery malt",
    "cars": "engine motor wheels car electric gearbox",
}
TINY = ["--encoder", "scratch:L1-H32", "--max_tokens", "16", "--batch_size", "32", "--learning_rate", "2e-3"]


def write_pairs(path: Path, labelled: int = 120, unlabelled: int = 200, label=lambda left, right: "similar") -> Path:
    """`labelled` pairs of one trade each (or as `label` says of two trades), and unlabelled ones of any two."""
    generator = np.random.default_rng(7)
    trades = list(TRADES)

    def text(trade: str) -> str:
        return " ".join(generator.choice(TRADES[trade].split(), generator.integers(2, 6)))

    rows = ["left\tright\tlabel"]
    for number in range(labelled + unlabelled):
        left, right = generator.choice(trades, 2)
        if number < labelled and label("a", "b") == "similar":
            right = left
        mark = label(left, right) if number < labelled else ""
        rows.append(f"{text(left)}\t{text(right)}\t{mark}")
    path.write_text("\n".join(rows) + "\n")
    return path
