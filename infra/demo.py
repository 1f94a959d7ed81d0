"""The main job from nothing: train on examples/, export, encode into an index, ask it. `make demo` runs it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from pathlib import Path

from common.command import Parser
from index.base import Hit
from index.errors import IndexMissing
from index.open import open_index
from infra.local.elasticsearch import Elasticsearch
from infra.steps import command, export_unless_there, follow, holds, train_unless_there
from pipelines.options import DEMO_INDEX, DEMO_MODEL, EXAMPLES

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
    code = follow(
        [
            ("train on examples/", lambda: train_unless_there(TRAIN)),
            ("export a SavedModel", lambda: export_unless_there(RUN, DEMO_MODEL)),
            ("encode examples/ into the index", lambda: encode(index())),
            ("ask the index", lambda: ask(index())),
        ]
    )
    if code == 0:
        print(f"the model is in {RUN}, its SavedModel in {DEMO_MODEL}; `make page` serves the page on it")
    return code


def url_of(kind: str, servers: ExitStack) -> Callable[[], str]:
    """The index's address; the first to ask for that of an Elasticsearch starts it."""

    @cache
    def address() -> str:
        if kind == "lance":
            return DEMO_INDEX
        print("$ python -m infra.local up elasticsearch", flush=True)
        return f"{servers.enter_context(Elasticsearch()).address}/companies"

    return address


def encode(index: str) -> None:
    """The server is started by the pipeline for as long as it needs one: not at all where nothing changed."""
    where = [] if index == DEMO_INDEX else ["--index", index]
    if holds_another_model(index):
        command("pipelines.reindex", *where)
    command("pipelines.encode", "--runner=DirectRunner", *where)


def holds_another_model(index: str) -> bool:
    try:
        return not holds(DEMO_MODEL, open_index(index).spec().model)
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
