"""Trains a PAUSE model: `python -m model.train --pairs F --out DIR`."""

from __future__ import annotations

import json
import sys

from common.command import Parser, exit_code
from common.errors import InputError
from model.training.config import TrainConfig
from model.training.flags import add_flags
from model.training.prepare import TrainingData, prepare
from model.training.run import Run

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
    add_flags(made)
    return made


def main(argv: list[str] | None = None) -> int:
    options = vars(parser().parse_args(argv))
    return exit_code(lambda: train(options))


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
    import common.runtime  # noqa: F401  (TensorFlow is imported only once the input is known to be good)
    from model.training.loop import Trainer, build_model

    return Trainer(build_model(config, data), data, config, run).train()


if __name__ == "__main__":
    sys.exit(main())
