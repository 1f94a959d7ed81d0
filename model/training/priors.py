"""The share of each class among the unlabelled pairs: given by hand, counted, or estimated."""

from collections.abc import Sequence

import numpy as np

# Best Bin Estimation's own constants (Garg et al., 2021, algorithm 1).
GAMMA = 0.01
DELTA = 0.1

FOLDS = 5
MIN_ROWS = 10  # on either side: two a fold
MARGIN = 1e-3  # a prior of exactly 0 or 1 would switch half of the PU risk off


def from_labels(labels: np.ndarray) -> np.ndarray:
    """Class frequencies [C] among labelled rows: labels [N, C] of 0 and 1."""
    if len(labels) == 0:
        raise ValueError("priors need at least one labelled row, got none")
    frequencies: np.ndarray = np.asarray(labels, np.float64).mean(axis=0)
    return frequencies


def estimate(positive: np.ndarray, unlabelled: np.ndarray, seed: int) -> float:
    """The share of positives among the unlabelled rows: features [P, F] and [U, F]."""
    for side, rows in (("positive", positive), ("unlabelled", unlabelled)):
        if len(rows) < MIN_ROWS:
            raise ValueError(f"a prior is estimated from at least {MIN_ROWS} {side} rows, got {len(rows)}")
    # Imported here: a command line that refuses bad input must not wait for scikit-learn.
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    features = np.concatenate([positive, unlabelled])
    is_positive = np.repeat([1, 0], [len(positive), len(unlabelled)])
    # Held-out scores: on rows it has seen, the classifier tells labelled positives from unlabelled ones by heart.
    scores = cross_val_predict(
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        features,
        is_positive,
        cv=StratifiedKFold(FOLDS, shuffle=True, random_state=seed),
        method="decision_function",
    )
    share = best_bin(scores[is_positive == 1], scores[is_positive == 0])
    return float(np.clip(share, MARGIN, 1 - MARGIN))


def best_bin(positive: np.ndarray, unlabelled: np.ndarray) -> float:
    """Best Bin Estimation from held-out scores [P] and [U], higher meaning more positive.

    A top bin without negatives has q_u / q_p = share. The bin is where the upper confidence bound of that ratio is
    least, neither too wide to be pure nor too thin to be trusted; the estimate is the ratio there, not the bound.
    """
    # Only positive scores can be best: between two of them q_p stays, and a lower threshold adds unlabelled rows.
    thresholds = np.unique(positive)
    q_positive = _share_at_least(thresholds, positive)
    q_unlabelled = _share_at_least(thresholds, unlabelled)
    deviation = sum(np.sqrt(np.log(4 / DELTA) / (2 * len(scores))) for scores in (positive, unlabelled))
    bound = (q_unlabelled + (1 + GAMMA) * deviation) / q_positive
    best = np.argmin(bound)
    return float(q_unlabelled[best] / q_positive[best])


def parse(text: str, names: Sequence[str]) -> np.ndarray:
    """Priors [C] in the order of `names`, from "0.3" (all classes) or "a=0.3,b=0.4" (each class once)."""
    accepted = f"expected one number for all classes, or name=number once for each of {', '.join(names)}"
    if "=" not in text:
        return np.full(len(names), _parse_one(text, text, accepted))
    priors: dict[str, float] = {}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.rpartition("="))  # the last "=": a name may hold one
        if not equals:
            raise ValueError(f"priors {text!r}: {part!r} has no class name; {accepted}")
        if name not in names:
            raise ValueError(f"priors {text!r}: {name!r} is no class; {accepted}")
        if name in priors:
            raise ValueError(f"priors {text!r}: {name!r} is given twice; {accepted}")
        priors[name] = _parse_one(value, text, accepted)
    missing = [name for name in names if name not in priors]
    if missing:
        raise ValueError(f"priors {text!r}: {', '.join(missing)} missing; {accepted}")
    return np.array([priors[name] for name in names])


def _parse_one(value: str, text: str, accepted: str) -> float:
    try:
        prior = float(value)
    except ValueError:
        raise ValueError(f"priors {text!r}: {value!r} is not a number; {accepted}") from None
    if not 0 < prior < 1:
        raise ValueError(f"priors {text!r}: {value} is not strictly between 0 and 1; {accepted}")
    return prior


def _share_at_least(thresholds: np.ndarray, scores: np.ndarray) -> np.ndarray:
    return 1 - np.searchsorted(np.sort(scores), thresholds, side="left") / len(scores)
