"""The whole pipeline, from a file to a searchable index, against the bare encoder and against Beam's own transforms.

Seconds of the pipeline and of MLTransform are those of their jobs, from the first look at the input until all that was
written can be found; Python's start and imports are left out, as they are of the encoders in process. Of the models,
MLTransform alone loads its own within the job. The endpoint of one pipeline multiplies in bfloat16 (`--precision` of
model.export); all others, MLTransform as it comes among them, in float32.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.measures.data import BUILD, need
from benchmarks.measures.rounds import alternate, row
from benchmarks.peers.contestant import Contestant
from benchmarks.peers.runtimes import interpreter
from benchmarks.serving import ENCODER, PEERS, SEED, base_encoder, check_agreement, exported
from benchmarks.targets.cluster import Cluster
from benchmarks.targets.jobs import LARGE_BATCH, OWN_CHOICE, Input, MLTransform, Pipeline, new_directory, quarter
from benchmarks.targets.server import Server
from index.base import Spec
from model.contract import BFLOAT16, Contract
from model.data.companies import read_companies
from model.training.config import BASE_ENCODER, MAX_TOKENS
from serving.client import EmbeddingClient

FOLDER = BUILD / "encode"
ROUNDS, TEXTS = 3, 5000
LANCE, ELASTIC = "pipeline into LanceDB", "pipeline into Elasticsearch"
COARSE = "pipeline in bfloat16 into Elasticsearch"
BEAM = "MLTransform into Elasticsearch"
TUNED = f"MLTransform in batches of {LARGE_BATCH}"
BARS = {
    (LANCE, ENCODER): 0.85,
    (ELASTIC, ENCODER): 0.75,
    (ELASTIC, BEAM): 1.3,
    (COARSE, BEAM): 1.3,
}
AGAIN = 20.0  # times faster, at least, when nothing has changed
FOUR_TIMES, MEMORY = 4.2, 1.1  # at most, of the seconds and of the peak memory, for four times the companies


def run(data: Path, rounds: int = ROUNDS, texts: int = TEXTS, peers: Path = PEERS) -> dict:
    (listed,) = need(data, "companies/listed.jsonl.gz")
    python, version, coarse_version = interpreter(peers), exported(), exported(BFLOAT16)
    companies = draw(listed, texts)
    whole = Input.write(FOLDER / "companies.jsonl", companies)
    fewer = Input.write(FOLDER / "quarter.jsonl", quarter(companies))
    with Server(version.parent) as server, Server(coarse_version.parent) as coarse_server, Cluster() as cluster:
        print(f"encoding {texts:,} texts once by each server to warm up", file=sys.stderr)
        contract, expected = encoded(server, companies)
        check_agreement(COARSE, expected, encoded(coarse_server, companies)[1])
        made = partial(Pipeline, whole=whole, quarter=fewer, folder=FOLDER)
        pipelines: dict[str, Pipeline] = {
            LANCE: made(server.address, new_index=lambda: new_directory(FOLDER / "index")),
            ELASTIC: made(server.address, new_index=lambda: cluster.new("pipeline")),
            COARSE: made(coarse_server.address, new_index=lambda: cluster.new("coarse")),
        }
        spec = Spec(contract.fingerprint, contract.dimension)
        beam = MLTransform(python, base_encoder(), cluster, spec, FOLDER)
        vectors = dict(zip((company["id"] for company in companies), expected, strict=True))
        for size in (OWN_CHOICE, LARGE_BATCH):
            beam(fewer, size, partial(check_written, cluster, fewer, vectors))
        with in_process(whole, expected) as encoder:
            theirs = {BEAM: partial(beam, whole, OWN_CHOICE), TUNED: partial(beam, whole, LARGE_BATCH)}
            seconds = alternate({ENCODER: encoder, **pipelines, **theirs}, rounds)
    return ratios(len(whole), seconds, pipelines)


def encoded(server: Server, companies: list[dict]) -> tuple[Contract, np.ndarray]:
    with EmbeddingClient([server.address]) as client:
        return client.contract(), client.embed(company["description"] for company in companies)[0]


def draw(listed: Path, count: int) -> list[dict]:
    """No text twice: the server would be sent it once only."""
    distinct = {company["description"]: company for company in read_companies(listed).values()}
    companies = list(distinct.values())
    rows = np.random.default_rng(SEED).permutation(len(companies))[:count]
    return [companies[row] for row in rows]


@contextmanager
def in_process(whole: Input, expected: np.ndarray) -> Iterator[Callable[[], float]]:
    """Loaded, warmed up by all texts, and found to make the server's vectors."""
    file = FOLDER / "texts.json"
    file.write_text(json.dumps([company["description"] for company in whole.companies]), encoding="utf-8")
    command = [sys.executable, "-m", "benchmarks.peers.in_process"]
    words = [*command, "encoder", BASE_ENCODER, str(MAX_TOKENS)]
    with Contestant(words, file, FOLDER / "encoder.log") as encoder:
        encoder.run(0)
        check_agreement(ENCODER, expected, encoder.vectors())
        print(f"{ENCODER} is ready", file=sys.stderr)
        yield partial(encoder.run, 0)


def check_written(cluster: Cluster, written: Input, vectors: Mapping[str, np.ndarray], index: str) -> None:
    ids = [company["id"] for company in written.companies]
    check_agreement(BEAM, np.stack([vectors[id] for id in ids]), cluster.vectors(index, ids))


def ratios(count: int, seconds: Mapping[str, np.ndarray], pipelines: Mapping[str, Pipeline]) -> dict:
    rates = {name: count / taken for name, taken in seconds.items()}
    result = {
        f"{ours} / {other}": row("texts/s", rates[ours], rates[other], bar) for (ours, other), bar in BARS.items()
    }
    # Whoever takes MLTransform as it comes has the line above; this one is for who looks for a size that suits it.
    result[f"{ELASTIC} / {TUNED}"] = row("texts/s", rates[ELASTIC], rates[TUNED])
    for name, runs in pipelines.items():
        first, again, few = (
            {figure: [getattr(run, figure) for run in some] for figure in ("seconds", "wall", "peak")}
            for some in (runs.first, runs.again, runs.quarters)
        )
        # Beside the jobs' own seconds, for whoever counts from pressing Enter.
        whole = count / np.array(first["wall"])
        result |= {
            f"{name}, start and imports too / {ENCODER}": row("texts/s", whole, rates[ENCODER]),
            f"{name}, first run / nothing changed": row("s", first["seconds"], again["seconds"], least=AGAIN),
            f"{name}, time of all / of a quarter": row("s", first["seconds"], few["seconds"], most=FOUR_TIMES),
            f"{name}, memory of all / of a quarter": row("MB", first["peak"], few["peak"], most=MEMORY),
        }
    return result
