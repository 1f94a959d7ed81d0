"""Steps that the demo and a retraining share: each is a command, and what is there already is not done again."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from common.errors import CommandError
from model import train
from model.errors import RunError
from model.training.config import TrainConfig
from model.training.prepare import prepare
from model.training.run import Run
from serving.storage.open import open_base

Step = tuple[str, Callable[[], None]]


class Stopped(Exception):
    """A step has found that the others must not follow: the reason for people, and the exit code."""

    def __init__(self, reason: str, code: int):
        super().__init__(reason)
        self.code = code


def follow(steps: list[Step]) -> int:
    """One after the other, until one fails; the exit code, and in the end how long each took."""
    began, took = time.monotonic(), []
    for title, step in steps:
        print(f"\n== {title}", flush=True)
        start = time.monotonic()
        try:
            step()
        except subprocess.CalledProcessError as error:
            print(f"error: {title} failed; the reason is above", file=sys.stderr)
            return error.returncode
        except CommandError as error:
            print(f"error: {title}: {error}", file=sys.stderr)
            return 2
        except Stopped as reason:
            print(reason, file=sys.stderr)
            return reason.code
        took.append((title, time.monotonic() - start))
    print("\n== done")
    for title, seconds in took:
        print(f"{seconds:7.1f} s  {title}")
    print(f"{time.monotonic() - began:7.1f} s  in all")
    return 0


def command(module: str, *arguments: str) -> None:
    print(f"$ python -m {module} {' '.join(arguments)}", flush=True)
    subprocess.run([sys.executable, "-m", module, *arguments], check=True)


def train_unless_there(arguments: list[str]) -> None:
    """A run on the same data with the same settings is gone on with; another one in its folder is replaced."""
    config = TrainConfig(**vars(train.parser().parse_args(arguments)))
    try:
        Run(config, prepare(config).hashes)
    except RunError:
        print(f"{config.out} was trained on other data or with other settings: training anew")
        shutil.rmtree(config.out)
    command("model.train", *arguments)


def export_unless_there(run: Path, base: str) -> None:
    if holds(base, fingerprint_of(run)):
        print(f"{base} holds this model already")
    else:
        command("model.export", "--model", str(run), "--to", base)


def fingerprint_of(run: Path) -> str:
    return str(json.loads((run / "metrics.json").read_text())["fingerprint"])


def holds(base: str, fingerprint: str) -> bool:
    """Whether it is the model of the newest version there."""
    opened = open_base(base)
    newest = opened.newest()
    return newest is not None and opened.contract(newest).fingerprint == fingerprint
