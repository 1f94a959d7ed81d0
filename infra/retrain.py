"""What people answered becomes the next model: pairs, training, a published version, and the index moved to it.
`make retrain` runs it on what the demo built."""

from __future__ import annotations

import sys
from pathlib import Path

from infra.steps import command, export_unless_there, fingerprint_of, follow, holds, train_unless_there
from model.command import Parser
from pipelines.options import DEMO_INDEX, DEMO_MODEL
from search.feedback import NOT_SIMILAR

FOLDER = Path("build/retrain")
PAIRS, COMPANIES, RUN, EXPORTS = (FOLDER / name for name in ("pairs.tsv", "companies.jsonl", "model", "serving"))
KNOWN = "examples/pairs.tsv"
TRAIN = [
    *("--pairs", str(PAIRS), "--companies", str(COMPANIES), "--negative", NOT_SIMILAR, "--out", str(RUN)),
    *("--frozen", "--projection", "384", "--contrastive", "1", "--epochs", "30", "--dev", "10%"),
    *("--cache", str(FOLDER / "cache")),  # most texts are those of the time before
]


def main(argv: list[str] | None = None) -> int:
    Parser(
        prog="python -m infra.retrain",
        description="From the answers people gave on the page of `make page` to a published model, in build/retrain.",
    ).parse_args(argv)
    return follow(
        [
            ("make pairs of the answers", label),
            ("train on them", lambda: train_unless_there(TRAIN)),
            ("export a SavedModel", lambda: export_unless_there(RUN, str(EXPORTS))),
            ("publish it", publish_unless_there),
            ("move the index to it", lambda: command("pipelines.reindex")),
        ]
    )


def label() -> None:
    where = ("--index", DEMO_INDEX, "--add", KNOWN)  # which only answers with an API key overrule
    made = ("--out", str(PAIRS), "--companies", str(COMPANIES), "--callers", str(FOLDER / "callers.json"))
    command("search.labels", *where, *made)


def publish_unless_there() -> None:
    if holds(DEMO_MODEL, fingerprint_of(RUN)):
        print(f"{DEMO_MODEL} serves this model already")
    else:
        command("serving.publish", "--from", str(EXPORTS), "--to", DEMO_MODEL)


if __name__ == "__main__":
    sys.exit(main())
