"""Training speed: ours against the same model fed as the public reference feeds it (all padded to 128, no sharing)."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from benchmarks.measures.data import BUILD, need, peer_pairs
from model.training.config import TrainConfig

TOKENS = 128  # the reference's fixed length, and the most that ours may use here
ROUNDS = 3
EXPECTED = {"nli": 1.5, "companies": 2.0}


def run(data: Path, rounds: int = ROUNDS) -> dict:
    (nli,) = need(data, "nli/train.tsv.gz")
    companies, peers, _ = peer_pairs(data)
    cases = {
        "nli": TrainConfig(
            pairs=str(nli),
            out=str(BUILD / "train"),
            columns={"left": "premise", "right": "hypothesis"},
            unlabelled="-",
            labels=0.1,
            max_tokens=TOKENS,
        ),
        "companies": TrainConfig(
            pairs=str(peers),
            out=str(BUILD / "train"),
            companies=str(companies),
            prior="0.1",
            max_tokens=TOKENS,
        ),
    }
    result = {name: measure(config, rounds) for name, config in cases.items()}
    for name, row in result.items():
        row["expected"] = EXPECTED[name]
    return result


def measure(config: TrainConfig, rounds: int) -> dict:
    """Alternates one batch of ours and one of the reference's, the same rows for both."""
    import common.runtime  # noqa: F401
    from model.data.sampling import epoch_rows, padded_share
    from model.training.loop import Trainer, build_model
    from model.training.prepare import prepare
    from model.training.run import Run

    data = prepare(config)
    trainer = Trainer(build_model(config, data), data, config, Run(config, data.hashes))
    batches = epoch_rows(data.pairs, config.batch_size, config.seed, epoch=0)
    picked = np.random.default_rng(0).choice(len(batches), rounds + 1, replace=False)
    seconds: dict[str, list[float]] = {"ours": [], "reference": []}
    waste = []
    for number, position in enumerate(tqdm(picked, desc="rounds", unit="round", disable=None)):
        ours = trainer.batch(number + 1, batches[position])
        reference = as_reference(trainer, batches[position])
        waste.append(padded_share(trainer.lengths, ours.groups))
        work = {
            "ours": lambda batch=ours: trainer.feed(batch, 1),
            "reference": lambda batch=reference: trainer.step(*batch),
        }
        for name in sorted(work, reverse=bool(number % 2)):
            took = timed(work[name])
            if number:  # the first round traces the graph
                seconds[name].append(took)
    pairs = config.batch_size * rounds
    ratios = np.array(seconds["reference"]) / np.array(seconds["ours"])
    return {
        "ours, pairs/s": round(pairs / sum(seconds["ours"]), 2),
        "reference, pairs/s": round(pairs / sum(seconds["reference"]), 2),
        "ratio": round(float(np.median(ratios)), 3),
        "ratio of each round": [round(float(ratio), 3) for ratio in ratios],
        "distinct texts of 2 x batch": len(np.concatenate(ours.groups)),
        "our padding": round(float(np.mean(waste)), 3),
    }


def as_reference(trainer, rows: np.ndarray) -> list[Any]:
    """Both texts of every row, each padded to 128, whatever their length and however often they occur."""
    from model.data.sampling import LENGTH_GROUPS

    pairs, variants = trainer.data.pairs, trainer.data.variants
    texts = variants.whole(np.concatenate([pairs.left[rows], pairs.right[rows]]))
    ids = np.full((len(texts), TOKENS), trainer.model.encoder.tokenizer.pad_id, np.int32)
    for row, text in enumerate(texts):
        ids[row, : trainer.lengths[text]] = trainer.tokens[text]
    ends = np.arange(len(texts), dtype=np.int32)
    known = np.zeros((0, 0), bool)
    left, right = ends[: len(rows)], ends[len(rows) :]
    return [np.array_split(ids, LENGTH_GROUPS), left, right, pairs.labels[rows], pairs.labelled[rows], known, 1]


def timed(work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
