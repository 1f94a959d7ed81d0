"""Trains a PAUSE model: `python -m model.train --pairs F --out DIR`."""

from __future__ import annotations

import argparse
import json
import sys

from model.command import Parser, answer
from model.config import BASE_ENCODER, MAX_TOKENS, TrainConfig
from model.errors import InputError
from model.prepare import TrainingData, parse_share, prepare
from model.run import Run

EXAMPLE = """example:
  python -m model.train --pairs examples/pairs.tsv --companies examples/companies.jsonl \\
      --frozen --projection 384 --contrastive 1 --epochs 30 --dev 10% --out build/model

The same command again goes on where a killed run stopped."""


def parser() -> Parser:
    made = Parser(
        prog="python -m model.train",
        description="Train a sentence encoder from few labelled and many unlabelled pairs.",
        epilog=EXAMPLE,
    )
    data = made.add_argument_group("data")
    data.add_argument("--pairs", required=True, help="tab-separated left, right, label (empty = unlabelled); .gz too")
    data.add_argument("--companies", help="JSON lines; left and right are then ids of these companies")
    data.add_argument("--recipe", help="how a company's fields become its text (default: '{industry}. {description}')")
    data.add_argument("--columns", type=_columns, default={}, metavar="left=A,right=B", help="other column names")
    data.add_argument("--unlabelled", default="", metavar="MARK", help="a label that means none, besides the empty one")
    data.add_argument("--negative", metavar="LABEL", help="the label that means: none of the classes")
    data.add_argument("--dev", metavar="F|5%", help="pairs to choose the best epoch by: a file, or a share of --pairs")
    data.add_argument("--labels", type=_share, default=1.0, metavar="10%", help="keep this share of the labels only")
    data.add_argument("--drop_fields", type=float, default=0.3, help="chance that a company appears without some field")
    shape = made.add_argument_group("model")
    shape.add_argument(
        "--encoder",
        default=BASE_ENCODER,
        help="scratch:L2-H128, package:NAME, a Keras Hub preset or folder, a Hugging Face folder, a TF Hub handle",
    )
    shape.add_argument("--max_tokens", type=int, default=MAX_TOKENS, help="texts are cut there (default: %(default)s)")
    shape.add_argument("--projection", type=int, metavar="D", help="a linear layer to D dimensions on top")
    shape.add_argument("--frozen", action="store_true", help="encode each text once; train head and projection only")
    loss = made.add_argument_group("loss")
    loss.add_argument("--prior", default="auto", help="class priors: 0.3, name=0.3,..., labels, or estimate")
    loss.add_argument("--alpha", type=float, default=3.0, help="annealing exponent of the PU term")
    loss.add_argument("--contrastive", type=float, default=0.0, metavar="W", help="weight of the contrastive term")
    loss.add_argument("--close", metavar="LABEL", help="the class the contrastive term draws together")
    loss.add_argument("--temperature", type=float, default=0.1, help="of the contrastive term")
    loss.add_argument("--augment", type=int, default=0, metavar="N", help="dropout views of every labelled pair")
    steps = made.add_argument_group("training")
    steps.add_argument("--epochs", type=int, default=2)
    steps.add_argument("--batch_size", type=int, default=128)
    steps.add_argument("--learning_rate", type=float, help="default: 7.5e-5, or 3e-4 with --frozen")
    steps.add_argument("--warm_up", type=float, default=0.1, help="share of the steps with a rising rate")
    steps.add_argument("--seed", type=int, default=0)
    steps.add_argument("--checkpoint_every", type=int, default=100, metavar="STEPS")
    steps.add_argument("--cache", metavar="DIR", help="keep a frozen encoder's vectors there for the next run")
    made.add_argument("--out", required=True, metavar="DIR")
    return made


def main(argv: list[str] | None = None) -> int:
    options = vars(parser().parse_args(argv))
    return answer(lambda: train(options))


def train(options: dict) -> None:
    try:
        config = TrainConfig(**options)
        data = prepare(config)
        run = Run(config, data.hashes)
    except ValueError as error:
        raise InputError(str(error)) from error
    print(json.dumps(run.metrics() if run.finished else _trained(config, data, run), indent=2))
    print(f"the model is in {config.out}", file=sys.stderr)


def _trained(config: TrainConfig, data: TrainingData, run: Run) -> dict:
    import model.runtime  # noqa: F401  (TensorFlow is imported only once the input is known to be good)
    from model.loop import Trainer, build_model

    return Trainer(build_model(config, data), data, config, run).train()


def _columns(text: str) -> dict[str, str]:
    pairs = dict(part.split("=", 1) for part in text.split(",") if "=" in part)
    if len(pairs) != text.count(",") + 1 or not pairs.keys() <= {"left", "right", "label"}:
        raise argparse.ArgumentTypeError(f"{text!r}: write left=A,right=B,label=C")
    return pairs


def _share(text: str) -> float:
    share = parse_share(text)
    if share is None:
        raise argparse.ArgumentTypeError(f"{text!r}: write a percentage, such as 10%")
    return share


if __name__ == "__main__":
    sys.exit(main())
