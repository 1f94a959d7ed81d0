"""Scores on labelled pairs: accuracy, precision and recall of the classifier, AUC of the cosine."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import accuracy_score, precision_score, recall_score, roc_auc_score

from model.data.pairs import Pairs
from model.network.pair_head import PairHead


def classifier_scores(head: PairHead, pairs: Pairs, left: np.ndarray, right: np.ndarray) -> dict[str, float]:
    """Vectors [N, D] of both sides -> scores over labelled rows; none where there is nothing to tell apart."""
    rows = np.flatnonzero(pairs.labelled)
    labels = pairs.labels[rows]
    if not len(rows) or (len(pairs.names) == 1 and labels.all()):
        return {}
    logits = np.asarray(head(left[rows], right[rows]))
    if pairs.multi_label or pairs.has_negatives:
        truth, guess, average = labels > 0, logits > 0, "binary" if labels.shape[1] == 1 else "macro"
    else:
        truth, guess, average = labels.argmax(axis=1), logits.argmax(axis=1), "macro"
    options = {"average": average, "zero_division": 0.0}
    return {
        "accuracy": float(accuracy_score(truth, guess)),
        "precision": float(precision_score(truth, guess, **options)),
        "recall": float(recall_score(truth, guess, **options)),
    }


def space_scores(pairs: Pairs, close: int, left: np.ndarray, right: np.ndarray) -> dict[str, float]:
    """AUC of the cosine: rows of the close class against all others."""
    truth = pairs.labels[:, close] > 0
    if truth.all() or not truth.any():
        return {}
    norms = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    return {"auc": float(roc_auc_score(truth, (left * right).sum(axis=1) / np.maximum(norms, 1e-12)))}
