"""The loop that the product lives from: lists shown, answers given, a model trained on them, an index moved to it.

People are played by the known peers: of each list that the service shows they say "similar" to those that are listed
as peers of the company asked about, and "not similar" to the others at its top. What comes of it is measured on
companies that no answer is about, on either side of it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from tqdm import tqdm

from benchmarks.measures.data import BUILD, peer_files
from benchmarks.serving import SEED, StepError
from benchmarks.targets.server import Server
from benchmarks.targets.service import Caller, Service
from index.base import Index
from index.open import open_index
from model.contract import INDUSTRY_FIRST
from model.data.tsv import read_columns
from model.training.config import BASE_ENCODER, MAX_TOKENS
from search.feedback.store import NOT_SIMILAR, SIMILAR

FOLDER = BUILD / "loop"
LISTS, SHOWN = 300, 50
REFUSED = 3  # "not similar", at most, of a list
NEAREST = 10
# A batch holds some thirty of the answers, each against all others of it, and training ends before it knows them by
# heart: in 30 epochs of batches of 128, of seven answers each, it forgets more of the other companies than it learns.
TRAIN = ("--batch_size", 512, "--epochs", 8, "--learning_rate", 1e-4)

Peers = Mapping[str, set[str]]


def run(data: Path, lists: int = LISTS) -> dict:
    companies, pairs = peer_files(data)
    shutil.rmtree(FOLDER, ignore_errors=True)
    models, index_url = FOLDER / "models", str(FOLDER / "index")
    # Both models read the same text of a company: what is gained is gained by the answers.
    same_text = ("--recipe", INDUSTRY_FIRST, "--max_tokens", str(MAX_TOKENS))
    step("model.export", "--model", BASE_ENCODER, "--to", models, *same_text)
    with Server(models) as server:
        at = ("--index", index_url, "--serving", server.address)
        letters = ("--dead_letters", FOLDER / "dead_letters")
        step("pipelines.encode", "--runner=DirectRunner", "--input", companies, *at, *letters)
        index = open_index(index_url)
        peers = known_peers(pairs, index)
        asked = np.random.default_rng(SEED).permutation(sorted(peers))[:lists].tolist()
        with Service(index_url, server.address, FOLDER / "service.log") as service:
            answered = answer(service.address, asked, peers)
        untouched = [id for id in peers if id not in answered]
        before = recall(index, untouched, peers)
        train(index_url)
        before_swap = len(server.log)
        step("model.export", "--model", FOLDER / "model", "--to", models)
        server.wait_for(r"version 1 is no longer served", before_swap)
        step("pipelines.reindex", *at)
        after = recall(open_index(index_url), untouched, peers)
    return {
        f"companies never answered on: {len(untouched):,} of {len(peers):,}": {
            f"recall@{NEAREST} before": round(before, 4),
            "after": round(after, 4),
            "lists": len(asked),
            "bar": "it rises",
            "met": "yes" if after > before else "no",
        }
    }


def known_peers(pairs: Path, index: Index) -> dict[str, set[str]]:
    """Of each company the others listed with it, as far as both are in the index."""
    found: dict[str, set[str]] = {}
    rows = [ends for _, ends in read_columns(pairs, ["anchor", "candidate"])]
    there = index.known({id for ends in rows for id in ends})
    for left, right in rows:
        if left != right and left in there and right in there:
            found.setdefault(left, set()).add(right)
    return found


def answer(address: tuple[str, int], asked: Sequence[str], peers: Peers) -> set[str]:
    """Answers on a list of each; all companies that took part in an answer."""
    caller, answered = Caller(address), set(asked)
    for anchor in tqdm(asked, desc="lists", unit="list", disable=None):
        found = caller.similar(anchor, SHOWN)
        refused = 0
        for hit in found["hits"]:
            id = hit["company"]["id"]
            is_peer = id in peers[anchor] or anchor in peers.get(id, ())
            refused += not is_peer
            if is_peer or refused <= REFUSED:
                caller.answer(found["shown"], anchor, id, SIMILAR if is_peer else NOT_SIMILAR, hit["rank"])
                answered.add(id)
    caller.close()
    return answered


def train(index_url: str) -> None:
    pairs, companies = FOLDER / "pairs.tsv", FOLDER / "companies.jsonl"
    step("search.labels", "--index", index_url, "--out", pairs, "--companies", companies, "--anonymous_pairs", 0)
    data = ("--pairs", pairs, "--companies", companies, "--negative", NOT_SIMILAR, "--max_tokens", MAX_TOKENS)
    how = ("--frozen", "--projection", 384, "--contrastive", 1, *TRAIN)
    step("model.train", *data, *how, "--out", FOLDER / "model")


def recall(index: Index, anchors: Sequence[str], peers: Peers) -> float:
    """Of the peers of each, the share among its nearest; the mean over all."""
    shares = []
    for anchor in tqdm(anchors, desc="asking", unit="company", disable=None):
        found = {hit.document.id for hit in index.nearest_to(anchor, NEAREST, exact=True)}
        shares.append(len(found & peers[anchor]) / len(peers[anchor]))
    return float(np.mean(shares))


def step(module: str, *arguments: object) -> None:
    words = [*map(str, arguments)]
    print(f"$ python -m {module} {' '.join(words)}", file=sys.stderr, flush=True)
    code = subprocess.run([sys.executable, "-m", module, *words], stdout=subprocess.DEVNULL).returncode
    if code:
        raise StepError(f"python -m {module} ended with {code}, for the reason it gives above")
