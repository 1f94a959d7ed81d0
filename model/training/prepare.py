"""Makes training data of a configuration; all mistakes in the input are reported here, before any work."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from model.contract import DESCRIPTION_ONLY, INDUSTRY_FIRST, TextRecipe
from model.data import variants
from model.data.companies import read_companies
from model.data.pairs import Pairs, hide_labels, read_pairs, split
from model.data.sampling import steps_per_epoch
from model.data.tsv import file_hash
from model.data.variants import Variants
from model.errors import DataError
from model.training import priors
from model.training.config import TrainConfig, parse_share


@dataclass(frozen=True)
class TrainingData:
    """Pairs, texts and choices of a run, all of them checked."""

    pairs: Pairs
    variants: Variants
    recipe: TextRecipe
    hashes: dict[str, str]  # sha256 of each file that was read, by its role
    steps: int  # of an epoch
    close: int | None  # the class that the contrastive term draws together
    prior: str  # how the class priors are found: "labels", "estimate", or the numbers themselves
    dev: Pairs | None = None
    dev_variants: Variants | None = None


def prepare(config: TrainConfig) -> TrainingData:
    pairs = _read(config, config.pairs)
    dev = None
    if config.dev:
        share = parse_share(config.dev)
        if share is not None and not 0 < share < 1:
            raise DataError(f"--dev {config.dev}: a share of the pairs lies between 0% and 100%, or name a file")
        if share:
            pairs, dev = split(pairs, share, config.seed)
        else:
            dev = _read(config, config.dev, pairs.names)
            dev = replace(dev, multi_label=pairs.multi_label or pairs.has_negatives)
    if config.labels < 1:
        pairs = hide_labels(pairs, config.labels, config.seed)
    _check_learnable(pairs, config.pairs)
    companies = read_companies(config.companies) if config.companies else None
    recipe = TextRecipe(config.recipe or (INDUSTRY_FIRST if companies else DESCRIPTION_ONLY))

    def texts_of(items: tuple[str, ...]) -> Variants:
        return variants.of_texts(items) if companies is None else variants.of_companies(items, companies, recipe)

    files = {"pairs": config.pairs, "companies": config.companies}
    if config.dev and not parse_share(config.dev):
        files["dev"] = config.dev
    return TrainingData(
        pairs=pairs,
        variants=texts_of(pairs.items),
        recipe=recipe,
        hashes={role: file_hash(name) for role, name in files.items() if name},
        steps=steps_per_epoch(pairs, config.batch_size),
        close=_close_class(config, pairs.names),
        prior=_prior(config.prior, pairs),
        dev=dev,
        dev_variants=texts_of(dev.items) if dev else None,
    )


def _read(config: TrainConfig, path: str, names: tuple[str, ...] | None = None) -> Pairs:
    return read_pairs(path, config.columns, config.unlabelled, config.negative, names)


def _check_learnable(pairs: Pairs, path: str) -> None:
    if not pairs.names:
        raise DataError(f"{path}: no row has a label; some labelled rows are needed")
    if len(pairs.names) == 1 and not pairs.has_negatives and pairs.labelled.all():
        raise DataError(
            f"{path}: every row has the label {pairs.names[0]!r}, so there is nothing to tell it from; "
            "add rows with an empty label (unlabelled pairs) or with other labels"
        )


def _prior(prior: str, pairs: Pairs) -> str:
    countable = len(pairs.names) > 1 or pairs.has_negatives
    if prior == "auto":
        prior = "labels" if countable else "estimate"
    if prior == "labels" and not countable:
        raise DataError("--prior labels says nothing of one class without negatives; give a number, or 'estimate'")
    if prior == "estimate":
        fewest = min(*pairs.labels.sum(axis=0), (~pairs.labelled).sum())
        if fewest < priors.MIN_ROWS:
            raise DataError(
                f"priors are estimated from at least {priors.MIN_ROWS} rows of every class and unlabelled ones, "
                f"the fewest are {int(fewest)}; give the numbers with --prior"
            )
    elif prior != "labels":
        priors.parse(prior, pairs.names)
    return prior


def _close_class(config: TrainConfig, names: tuple[str, ...]) -> int | None:
    if not config.contrastive:
        return None
    close = config.close or (names[0] if len(names) == 1 else None)
    if close not in names:
        raise DataError(f"--close must name the class that means 'close in the space', one of: {', '.join(names)}")
    return names.index(close)


def sample_rows(rows: np.ndarray, most: int, seed: int) -> np.ndarray:
    return rows if len(rows) <= most else np.random.default_rng(seed).choice(rows, most, replace=False)
