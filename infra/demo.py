"""The main job from nothing: train on examples/, export, ask for the nearest companies. `make demo` runs it."""

from __future__ import annotations

import importlib
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
from model.errors import RunError
from model.prepare import prepare
from model.run import Run

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
        ("ask the exported model", ask),
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
    if version and facts(version)["contract"]["fingerprint"] == trained:
        print(f"{version} holds this model already")
        return
    command("model.export", "--model", str(RUN), "--to", str(BASE))


def latest_version() -> Path | None:
    numbers = [int(entry.name) for entry in BASE.glob("*") if entry.name.isdigit()]
    return BASE / str(max(numbers)) if numbers else None


def facts(version: Path) -> dict:
    return json.loads((version / "assets.extra" / "pause.json").read_text())


def ask() -> None:
    """Only the SavedModel and the contract in it are used here, as by any other client."""
    from model.contract import TextRecipe
    from model.data import read_companies
    from model.runtime import tensorflow as tf

    importlib.import_module("tensorflow_text")  # registers the tokenizer's ops; after TensorFlow has started quietly

    version = latest_version()
    assert version is not None, "the step before exported one"
    recipe = TextRecipe(facts(version)["contract"]["text_recipe"])
    companies = list(read_companies(COMPANIES).values())
    serve = tf.saved_model.load(str(version)).signatures["serving_default"]
    vectors = serve(text=tf.constant([recipe.render(company) for company in companies]))["embedding"].numpy()
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
