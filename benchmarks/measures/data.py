"""Where the measured data lies, and training files made from it under build/."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from model.data.companies import read_companies
from model.errors import DataError

BUILD = Path("build/benchmarks")
DEFAULT = Path("../shared/data")
UNLABELLED_PER_PEER = 2  # the paper's own company pairs: 55,139 similar, 111,693 not


def need(data: Path, *names: str) -> list[Path]:
    paths = [data / name for name in names]
    for path in paths:
        if not path.exists():
            raise DataError(f"{path} is not there; name the folder that holds it with --data (make: DATA=...)")
    return paths


def peer_files(data: Path) -> tuple[Path, Path]:
    """Companies (JSON lines) and their listed peers (anchor, candidate)."""
    companies, peers = need(data, "companies/peers-companies.jsonl.gz", "companies/peers-pairs.tsv")
    return companies, peers


def peer_pairs(data: Path, held_out: float = 0.0, seed: int = 0) -> tuple[Path, Path, Path]:
    """Training pairs: the peers of each anchor as positives, random candidates of the same anchor unlabelled.

    Answers with the companies file, the training pairs, and the pairs of the anchors held out: no pair that one of
    these is part of, on either side, is trained on.
    """
    companies_path, peers_path = peer_files(data)
    ids = sorted(read_companies(companies_path))
    listed = [tuple(line.split("\t")) for line in peers_path.read_text().splitlines()[1:]]
    listed = [pair for pair in listed if set(pair) <= set(ids) and pair[0] != pair[1]]
    generator = np.random.default_rng(seed)
    anchors = sorted({left for left, _ in listed})
    held = set(generator.choice(anchors, round(held_out * len(anchors)), replace=False).tolist())
    positives = [pair for pair in dict.fromkeys(listed) if not held & set(pair)]
    known, free = set(positives), [name for name in ids if name not in held]
    rows = [(*pair, "peer") for pair in positives]
    for left, _ in positives:
        for right in generator.choice(free, UNLABELLED_PER_PEER):
            if right != left and (left, right) not in known:
                rows.append((left, str(right), ""))
    test_rows = [(*pair, "peer") for pair in dict.fromkeys(listed) if pair[0] in held]
    paths = [BUILD / f"peer-pairs-{held_out:g}-{seed}-{part}.tsv" for part in ("train", "test")]
    for path, content in zip(paths, (rows, test_rows), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join("\t".join(row) + "\n" for row in [("left", "right", "label"), *content]))
    return companies_path, paths[0], paths[1]


def write_result(name: str, result: dict) -> Path:
    path = BUILD / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=2) + "\n")
    return path
