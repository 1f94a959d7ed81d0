"""The paper's tables on the data at hand, and the company figures: every command shown, every result kept.

Steps whose result is there already are not run again, so it can be stopped and started at will.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.measures.data import BUILD, need, peer_pairs
from common.errors import InputError
from model.training.config import BASE_ENCODER, MAX_TOKENS

RESULTS = BUILD / "reproduce"
SHARES = ("100%", "50%", "10%", "5%")  # of the labels, the paper's table 4
HELD_OUT = 0.2  # of the anchors: companies that training has never seen in a pair
CUT = ("--max_tokens", str(MAX_TOKENS))  # of companies' texts, for all alike: a shorter cut by itself scores better
PEERS = [
    *("--frozen", "--projection", "384", "--contrastive", "1", "--batch_size", "512", "--epochs", "8", *CUT),
    *("--prior", "0.05", "--cache", str(RESULTS / "vectors")),
]


class StepError(InputError):
    """A step that did not end well; it has said why on stderr itself."""


def run(data: Path) -> dict:
    need(data, "sts/sts12.tsv", "senteval/mr.tsv", "nli/train.tsv.gz")
    companies, train, test = peer_pairs(data, HELD_OUT)
    asked = ["--companies", str(companies), "--pairs", str(test)]
    scores = {}
    for task in ("sts", "senteval"):
        scores[f"{task}, untouched"] = evaluate(f"{task}-untouched", task, BASE_ENCODER, "--data", str(data))
    scores["stsb, 1 seed"] = evaluate("stsb", "stsb", BASE_ENCODER, "--data", str(data), "--seeds", "1")
    pictured = []
    for name, recipe in (("description", "{description}"), ("industry first", "{industry}. {description}")):
        # The cut is part of the name: a result of another cut must neither stand in for this one nor be pictured.
        pictured.append(f"companies-{name.replace(' ', '-')}-{MAX_TOKENS}")
        more = [*asked, "--recipe", recipe, *CUT]
        scores[f"companies, {name}"] = evaluate(pictured[-1], "companies", BASE_ENCODER, *more)
    for share in SHARES:
        model = RESULTS / f"peers-{share.rstrip('%')}"
        pictured.append(model.name)
        step(model, "model.train", *PEERS, "--pairs", train, "--companies", companies, "--labels", share)
        scores[f"companies, {share} of labels"] = evaluate(model.name, "companies", str(model), *asked)
    step(RESULTS / "companies.png", "model.report", *(RESULTS / f"{name}.json" for name in pictured))
    return scores


def evaluate(name: str, task: str, model: str, *more: str) -> dict:
    result = RESULTS / f"{name}.json"
    if not result.exists():
        step(result, "model.evaluate", task, "--model", model, *more)
    return json.loads(result.read_text())["scores"]


def step(out: Path, module: str, *arguments: object) -> None:
    """Shows and runs the command that makes `out`."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    words = [*map(str, arguments), "--out", str(out)]
    print(f"$ python -m {module} {' '.join(words)}", file=sys.stderr, flush=True)
    code = subprocess.run([sys.executable, "-m", module, *words], stdout=subprocess.DEVNULL).returncode
    if code:
        how = f"exit code {code}" if code > 0 else f"signal {-code}"
        raise StepError(
            f"the step that makes {out} (python -m {module}) ended with {how}, for the reason it gives above; "
            "once that is put right, the same command goes on from there"
        )
