"""The main job from nothing: train on examples/, export, encode into an index, ask it. `make demo` runs it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from pathlib import Path

from index.base import Hit
from index.errors import IndexMissing
from index.open import open_index
from infra.local.elasticsearch import Elasticsearch
from model import train
from model.command import Parser
from model.config import TrainConfig
from model.errors import InputError, RunError
from model.prepare import prepare
from model.run import Run
from pipelines.options import DEMO_INDEX, DEMO_MODEL, EXAMPLES
from serving.storage import open_base

RUN = Path("build/demo/model")
TRAIN = [
    *("--pairs", "examples/pairs.tsv", "--companies", EXAMPLES, "--out", str(RUN)),
    *("--frozen", "--projection", "384", "--contrastive", "1", "--epochs", "30", "--dev", "10%"),
]
ASKED = ("spotify", "ryanair", "nvidia")
WORDS = "cheap flights in Europe"
NEAREST = 5


def main(argv: list[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    with ExitStack() as servers:
        return run(url_of(arguments.index, servers))


def run(index: Callable[[], str]) -> int:
    steps: list[tuple[str, Callable[[], None]]] = [
        ("train on examples/", train_unless_there),
        ("export a SavedModel", export_unless_there),
        ("encode examples/ into the index", lambda: encode(index())),
        ("ask the index", lambda: ask(index())),
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
    print(f"{time.monotonic() - began:7.1f} s  in all; the model is in {RUN}, its SavedModel in {DEMO_MODEL}")
    return 0


def url_of(kind: str, servers: ExitStack) -> Callable[[], str]:
    """The index's address; the first to ask for that of an Elasticsearch starts it."""

    @cache
    def address() -> str:
        if kind == "lance":
            return DEMO_INDEX
        print("$ python -m infra.local up elasticsearch", flush=True)
        return f"{servers.enter_context(Elasticsearch()).address}/companies"

    return address


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
    base = open_base(DEMO_MODEL)
    version = base.newest()
    if version is not None and base.contract(version).fingerprint == trained:
        print(f"{base.location(version)} holds this model already")
        return
    command("model.export", "--model", str(RUN), "--to", DEMO_MODEL)


def encode(index: str) -> None:
    """The server is started by the pipeline for as long as it needs one: not at all where nothing changed."""
    where = [] if index == DEMO_INDEX else ["--index", index]
    if holds_another_model(index):
        command("pipelines.reindex", *where)
    command("pipelines.encode", "--runner=DirectRunner", *where)


def holds_another_model(index: str) -> bool:
    base = open_base(DEMO_MODEL)
    newest = base.newest()
    try:
        return newest is not None and open_index(index).spec().model != base.contract(newest).fingerprint
    except IndexMissing:
        return False


def ask(index: str) -> None:
    companies = open_index(index)
    companies.refresh()
    for id in ASKED:
        print(f"like {companies.get(id).name}:")
        show(companies.nearest_to(id, NEAREST))
    print(f"with the words {WORDS!r}:")
    show(companies.search(WORDS, NEAREST))


def show(hits: list[Hit]) -> None:
    for hit in hits:
        company = hit.document
        print(f"  {hit.score:6.3f}  {company.name} ({company.industry or 'industry unknown'})")


def parser() -> Parser:
    made = Parser(
        prog="python -m infra.demo",
        description="The main job from nothing, in build/demo; what is there already is not done again.",
        epilog="example:\n  python -m infra.demo --index elasticsearch",
    )
    made.add_argument(
        "--index",
        choices=["lance", "elasticsearch"],
        default="lance",
        help="where the vectors go: into the embedded index (default), or a real Elasticsearch started for the run",
    )
    return made


if __name__ == "__main__":
    sys.exit(main())
