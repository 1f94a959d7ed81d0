"""The embedded server, asked through gRPC, against the same model in process: ours, and in other people's runtimes.

All have the same texts and take turns, so that whatever slows the machine down slows all of them.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.measures import cold_start
from benchmarks.measures.data import BUILD, need
from benchmarks.measures.rounds import alternate, row
from benchmarks.measures.senders import ALL_AT_ONCE, IN_TURN, SIDE_BY_SIDE, SINGLES, SIXTEENS, senders
from benchmarks.peers.contestant import Contestant, ContestantError
from benchmarks.peers.runtimes import interpreter
from benchmarks.quality.reproduce import StepError
from benchmarks.targets.server import Server
from model.contract import FLOAT32
from model.data.companies import read_companies
from model.training.config import BASE_ENCODER, MAX_TOKENS
from serving.client import EmbeddingClient

FOLDER, PEERS = BUILD / "serving", BUILD / "peers"
ROUNDS, TEXTS, SEED = 5, 384, 4
WARM_UP = 3  # rounds that do not count, of all alike: shapes that are asked for often are compiled on the way
BATCH_SIZES = (8, 16, 32)  # a peer takes part with the one it is fastest with
AGREEMENT = 0.9999  # the least cosine between the server's vector of a text and another's
# Where texts were broken on their way into the data ("BÃ¼lach"), tokenizers differ in what they make of the pieces.
AGREEING = 0.95  # the least share of texts

ENCODER, COMPILED = "encoder in process", "compiled in process"
TORCH, ONNX = "sentence-transformers", "ONNX Runtime"
# Ours, whom it is held against (the fastest of them in each round), and the least ratio. All three ways of sending have
# the same bar: which of them a claim is about is for the reader to say, not for the figures to choose.
WAYS = (ALL_AT_ONCE, SIDE_BY_SIDE, IN_TURN)
BARS: dict[tuple[str, tuple[str, ...]], float | None] = {
    **{(way, (ENCODER,)): 0.95 for way in WAYS},
    **{(way, (COMPILED,)): 0.95 for way in WAYS},
    (SINGLES, (SIXTEENS,)): 0.8,
    **{(way, (TORCH, ONNX)): 1.0 for way in WAYS},
    (SIDE_BY_SIDE, (TORCH,)): None,
    (SIDE_BY_SIDE, (ONNX,)): None,
}
FIRST_REQUEST = 2.0  # times the later ones, at most


def run(data: Path, rounds: int = ROUNDS, texts: int = TEXTS, peers: Path = PEERS) -> dict:
    (companies,) = need(data, "companies/listed.jsonl.gz")
    python = interpreter(peers)
    drawn = draw(companies, texts)
    version = exported()
    ours, theirs = [sys.executable, "-m", "benchmarks.peers.in_process"], [python, "-m", "benchmarks.peers.runtimes"]
    others = {
        ENCODER: [*ours, "encoder", BASE_ENCODER, str(MAX_TOKENS)],
        COMPILED: [*ours, "compiled", str(version), str(MAX_TOKENS)],
        TORCH: [*theirs, "torch", str(base_encoder()), str(MAX_TOKENS)],
        ONNX: [*theirs, "onnx", str(base_encoder()), str(MAX_TOKENS)],
    }
    with Server(version.parent) as server:
        result = throughput(server.address, drawn, others, rounds)
    return result | first_requests(version, drawn, rounds)


def draw(companies: Path, count: int) -> list[str]:
    """As they come, whatever their length: half of them are longer than the model reads."""
    descriptions = list(dict.fromkeys(company["description"] for company in read_companies(companies).values()))
    rows = np.random.default_rng(SEED).permutation(len(descriptions))[:count]
    return [descriptions[row] for row in rows]


def exported(precision: str = FLOAT32) -> Path:
    """The base encoder's version directory, made unless it is there from a run before."""
    version = FOLDER / ("pause" if precision == FLOAT32 else f"pause-{precision}") / "1"
    if not version.exists():
        words = ["--model", BASE_ENCODER, "--max_tokens", str(MAX_TOKENS), "--precision", precision]
        words += ["--to", str(version.parent)]
        print(f"$ python -m model.export {' '.join(words)}", file=sys.stderr, flush=True)
        code = subprocess.run([sys.executable, "-m", "model.export", *words], stdout=subprocess.DEVNULL).returncode
        if code:
            raise StepError(f"the export to {version.parent} ended with {code}, for the reason it gives above")
    return version


def base_encoder() -> Path:
    """The Hugging Face directory that the export was made from, in the package that `make setup` installs."""
    found = importlib.util.find_spec(BASE_ENCODER.removeprefix("package:"))
    assert found and found.submodule_search_locations, "the export has found it"
    return next(Path(found.submodule_search_locations[0]).glob("**/model.safetensors")).parent


def throughput(address: str, texts: list[str], others: Mapping[str, Sequence[str]], rounds: int) -> dict:
    """Texts a second of the server there and of all others, who are named with their commands."""
    with EmbeddingClient([address]) as client:
        expected, _ = client.embed(texts)
    with senders(address, texts) as through_grpc, without_server(others, texts, expected) as in_process:
        contestants = through_grpc | in_process
        alternate(contestants, WARM_UP)
        taken = alternate(contestants, rounds)
    rates = {name: len(texts) / seconds for name, seconds in taken.items()}
    return {
        f"{ours} / {' or '.join(theirs)}": row("texts/s", rates[ours], np.max([rates[name] for name in theirs], 0), bar)
        for (ours, theirs), bar in BARS.items()
        if set(theirs) <= set(rates)
    }


@contextmanager
def without_server(
    commands: Mapping[str, Sequence[str]], texts: list[str], expected: np.ndarray
) -> Iterator[dict[str, Callable[[], float]]]:
    """Loaded, found to make the same vectors, each with the batch size it is fastest with."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    file = FOLDER / "texts.json"
    file.write_text(json.dumps(texts), encoding="utf-8")
    with ExitStack() as stack:
        ready: dict[str, Callable[[], float]] = {}
        for name, command in commands.items():
            log = FOLDER / f"{name.replace(' ', '-')}.log"
            contestant = stack.enter_context(Contestant(command, file, log))
            contestant.run(max(BATCH_SIZES))  # the first run traces graphs and fills caches
            check_agreement(name, expected, contestant.vectors())
            # Ours cut batches by tokens, whatever they are told.
            best = min(BATCH_SIZES, key=contestant.run) if name in (TORCH, ONNX) else 0
            print(f"{name} is ready" + (f", fastest in batches of {best}" if best else ""), file=sys.stderr)
            ready[name] = partial(contestant.run, best)
        yield ready


def check_agreement(name: str, expected: np.ndarray, found: np.ndarray) -> None:
    cosines = (expected * found).sum(axis=1)  # [n, d] each, of unit length
    share = (cosines >= AGREEMENT).mean()
    if share < AGREEING:
        raise ContestantError(
            f"{name} makes the server's vectors (cosine {AGREEMENT}) of {share:.0%} of the texts only, median cosine "
            f"{np.median(cosines):.6f}; is it the same model?"
        )


def first_requests(version: Path, texts: list[str], rounds: int) -> dict:
    result = {}
    for title, pairs in cold_start.measure(version, texts, rounds, FOLDER).items():
        first, later = zip(*pairs, strict=True)
        result[f"{title} / later ones"] = row("ms", first, later, most=FIRST_REQUEST)
    return result
