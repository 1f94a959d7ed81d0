"""The main job from nothing: train on examples/, export, serve, ask for the nearest companies. `make demo` runs it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from model import train
from model.config import TrainConfig
from model.data import read_companies
from model.errors import InputError, RunError
from model.export import EXTRA, FACTS
from model.prepare import prepare
from model.run import Run
from serving.client import EmbeddingClient
from serving.embedded import EmbeddedServer
from serving.storage import incomplete, open_base

BUILD = Path("build/demo")
COMPANIES, PAIRS = Path("examples/companies.jsonl"), Path("examples/pairs.tsv")
RUN, BASE = BUILD / "model", BUILD / "serving" / "pause"
TRAIN = [
    *("--pairs", str(PAIRS), "--companies", str(COMPANIES), "--out", str(RUN)),
    *("--frozen", "--projection", "384", "--contrastive", "1", "--epochs", "30", "--dev", "10%"),
]
ASKED = ("spotify", "ryanair", "nvidia")
NEAREST = 5


def main() -> int:
    steps: list[tuple[str, Callable[[], None]]] = [
        ("train on examples/", train_unless_there),
        ("export a SavedModel", export_unless_there),
        ("serve it, encode examples/, ask", serve_and_ask),
    ]
    began, took = time.monotonic(), []
    for title, step in steps:
        print(f"\n== {title}", flush=True)
        start = time.monotonic()
        try:
            step()
        except subprocess.CalledProcessError as error:
            print(f"error: {title} failed; the reason is above", file=sys.stderr)
            return error.returncode
        except InputError as error:
            print(f"error: {title}: {error}", file=sys.stderr)
            return 2
        took.append((title, time.monotonic() - start))
    print("\n== done")
    for title, seconds in took:
        print(f"{seconds:7.1f} s  {title}")
    print(f"{time.monotonic() - began:7.1f} s  in all; the model is in {RUN}, its SavedModel in {latest_version()}")
    return 0


def command(module: str, *arguments: str) -> None:
    print(f"$ python -m {module} {' '.join(arguments)}", flush=True)
    subprocess.run([sys.executable, "-m", module, *arguments], check=True)


def train_unless_there() -> None:
    config = TrainConfig(**vars(train.parser().parse_args(TRAIN)))
    try:
        Run(config, prepare(config).hashes)
    except RunError:
        print(f"{RUN} was trained on other examples or with other settings: training anew")
        shutil.rmtree(RUN)
    command("model.train", *TRAIN)


def export_unless_there() -> None:
    trained = json.loads((RUN / "metrics.json").read_text())["fingerprint"]
    version = latest_version()
    if version and not incomplete(version) and facts(version)["contract"]["fingerprint"] == trained:
        print(f"{version} holds this model already")
        return
    command("model.export", "--model", str(RUN), "--to", str(BASE))


def latest_version() -> Path | None:
    versions = open_base(str(BASE)).versions()
    return BASE / str(versions[-1]) if versions else None


def facts(version: Path) -> dict:
    return json.loads((version / EXTRA / FACTS).read_text())


def serve_and_ask() -> None:
    """Only the endpoint and the contract it states are used here, as by any other client."""
    companies = list(read_companies(COMPANIES).values())
    # Compiling takes longer than these few texts.
    flags = ("--model_base_path", str(BASE), "--xla_cpu_compilation_enabled=false")
    print(f"$ python -m serving.server {' '.join(flags)}", flush=True)
    with EmbeddedServer(*flags) as server, EmbeddingClient([server.address]) as client:
        recipe = client.contract().recipe
        began = time.monotonic()
        vectors, fingerprints = client.embed([recipe.render(company) for company in companies])
        took = time.monotonic() - began
        print(f"{len(companies)} companies encoded by model {fingerprints[0]} at {server.address} in {took:.1f} s")
    place = {company["id"]: row for row, company in enumerate(companies)}
    for asked in ASKED:
        cosines = vectors @ vectors[place[asked]]
        cosines[place[asked]] = -np.inf
        print(f"\nlike {companies[place[asked]]['name']}:")
        for row in np.argsort(-cosines)[:NEAREST]:
            company = companies[row]
            print(f"  {cosines[row]:.3f}  {company['name']} ({company.get('industry', 'industry unknown')})")


if __name__ == "__main__":
    sys.exit(main())
