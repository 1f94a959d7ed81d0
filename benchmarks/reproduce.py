"""The paper's tables on the data at hand, and the company figures: every command shown, every result kept.

Steps whose result is there already are not run again, so it can be stopped and started at will.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.data import BUILD, need, peer_pairs
from model.config import BASE_ENCODER

RESULTS = BUILD / "reproduce"
SHARES = ("100%", "50%", "10%", "5%")  # of the labels, the paper's table 4
HELD_OUT = 0.2  # of the anchors: companies that training has never seen in a pair
PEERS = [
    *("--frozen", "--projection", "384", "--contrastive", "1", "--batch_size", "512", "--epochs", "8"),
    *("--prior", "0.05", "--cache", str(RESULTS / "vectors")),
]


def run(data: Path) -> dict:
    need(data, "sts/sts12.tsv", "senteval/mr.tsv", "nli/train.tsv.gz")
    companies, train, test = peer_pairs(data, HELD_OUT)
    asked = ["--companies", str(companies), "--pairs", str(test)]
    scores = {}
    for task in ("sts", "senteval"):
        scores[f"{task}, untouched"] = evaluate(f"{task}-untouched", task, BASE_ENCODER, "--data", str(data))
    scores["stsb, 1 seed"] = evaluate("stsb", "stsb", BASE_ENCODER, "--data", str(data), "--seeds", "1")
    for name, recipe in (("description", "{description}"), ("industry first", "{industry}. {description}")):
        file = f"companies-{name.replace(' ', '-')}"
        scores[f"companies, {name}"] = evaluate(file, "companies", BASE_ENCODER, *asked, "--recipe", recipe)
    for share in SHARES:
        model = RESULTS / f"peers-{share.rstrip('%')}"
        shown(
            "model.train",
            *PEERS,
            "--pairs",
            str(train),
            "--companies",
            str(companies),
            "--labels",
            share,
            "--out",
            model,
        )
        scores[f"companies, {share} of labels"] = evaluate(model.name, "companies", str(model), *asked)
    results = sorted(str(path) for path in RESULTS.glob("companies-*.json")) + sorted(
        map(str, RESULTS.glob("peers-*.json"))
    )
    shown("model.report", *results, "--out", RESULTS / "companies.png")
    return scores


def evaluate(name: str, task: str, model: str, *more: str) -> dict:
    result = RESULTS / f"{name}.json"
    if not result.exists():
        shown("model.evaluate", task, "--model", model, *more, "--out", result)
    return json.loads(result.read_text())["scores"]


def shown(module: str, *arguments: object) -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    words = [str(argument) for argument in arguments]
    print(f"$ python -m {module} {' '.join(words)}", file=sys.stderr, flush=True)
    subprocess.run([sys.executable, "-m", module, *words], check=True, stdout=subprocess.DEVNULL)
