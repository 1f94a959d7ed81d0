"""SentEval (the paper's table 3): what a logistic regression can read out of frozen vectors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tqdm import tqdm

from model.data.tsv import read_columns
from model.errors import DataError
from model.evaluate.sts import Encode
from model.evaluate.table import data_folder

FOLDED = ("mr", "cr", "subj", "mpqa")
SPLIT = ("sst2", "trec", "mrpc")
TASKS = (*FOLDED, *SPLIT)
FOLDS, INNER_FOLDS = 10, 3
STRENGTHS = (1.0, 10.0, 100.0)  # of C; unit vectors have small features, so weights must be free to grow


@dataclass(frozen=True)
class Labelled:
    """Labels with one sentence each, or two where the task is about pairs."""

    labels: np.ndarray  # str [n]
    sentences: tuple[tuple[str, ...], ...]  # one or two columns of n sentences


def read_tasks(data: Path, tasks: Sequence[str]) -> dict[str, dict[str, Labelled]]:
    """Each task's splits: `all` where folds are made, else train, dev (not every task has one) and test."""
    unknown = [task for task in tasks if task not in TASKS]
    if unknown:
        raise DataError(f"--tasks: there is no {unknown[0]!r}; choose among {','.join(TASKS)}")
    folder = data_folder(data, "senteval")
    return {task: _read_task(folder, task) for task in tasks}


def _read_task(folder: Path, task: str) -> dict[str, Labelled]:
    columns = ["sentence1", "sentence2"] if task == "mrpc" else ["sentence"]
    if task in FOLDED:
        splits, smallest = {"all": folder / f"{task}.tsv"}, FOLDS
    else:
        splits, smallest = {split: folder / f"{task}-{split}.tsv" for split in ("train", "dev", "test")}, INNER_FOLDS
        if not splits["dev"].exists():
            del splits["dev"]
    read = {}
    for split, path in splits.items():
        labels, *sentences = zip(*(cells for _, cells in read_columns(path, ["label", *columns])), strict=True)
        read[split] = Labelled(np.array(labels), tuple(sentences))
    first = next(iter(splits))
    counts = Counter(read[first].labels.tolist())
    label, rows = min(counts.items(), key=lambda item: item[1])
    if rows < smallest or len(counts) < 2:
        raise DataError(
            f"{splits[first]}: {len(counts)} labels, and {label!r} has {rows} rows; "
            f"two labels with {smallest} rows each are the least that can be learned from"
        )
    return read


def score(tasks: dict[str, dict[str, Labelled]], encode: Encode, seed: int) -> dict[str, float]:
    """Accuracy x 100 of each task. All texts are encoded in one go: MR and SST2 share most of theirs."""
    texts = dict.fromkeys(
        text for splits in tasks.values() for split in splits.values() for column in split.sentences for text in column
    )
    place = {text: row for row, text in enumerate(texts)}
    vectors = encode(list(texts))

    def features(split: Labelled) -> np.ndarray:
        u, *others = (vectors[[place[text] for text in column]] for column in split.sentences)
        return np.hstack([np.abs(u - others[0]), u * others[0]]) if others else u

    scores = {}
    for task, splits in tqdm(tasks.items(), desc="logistic regressions", unit="task", disable=None):
        if "all" in splits:
            scores[task] = 100 * folded_accuracy(features(splits["all"]), splits["all"].labels, seed)
        else:
            scores[task] = 100 * split_accuracy(splits, features, seed)
    return scores


def folded_accuracy(features: np.ndarray, labels: np.ndarray, seed: int) -> float:
    """Mean accuracy over the test folds; C is chosen anew inside each training part."""
    accuracies = [
        fit(features[train], labels[train], _folds(INNER_FOLDS, seed)).score(features[test], labels[test])
        for train, test in _folds(FOLDS, seed).split(features, labels)
    ]
    return float(np.mean(accuracies))


def split_accuracy(splits: dict[str, Labelled], features: Callable[[Labelled], np.ndarray], seed: int) -> float:
    """Accuracy on test; C is chosen on dev where there is one."""
    from sklearn.model_selection import PredefinedSplit

    known = [splits[name] for name in ("train", "dev") if name in splits]
    # -1 marks the rows that are never held out: C is chosen on dev, then all known rows are fitted.
    held_out = PredefinedSplit(np.repeat([-1, 0][: len(known)], [len(split.labels) for split in known]))
    classifier = fit(
        np.vstack([features(split) for split in known]),
        np.concatenate([split.labels for split in known]),
        held_out if "dev" in splits else _folds(INNER_FOLDS, seed),
    )
    return float(classifier.score(features(splits["test"]), splits["test"].labels))


def fit(features: np.ndarray, labels: np.ndarray, held_out):
    """A logistic regression with the C that is best on the held-out parts."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from threadpoolctl import threadpool_limits

    # The products are small: a second BLAS thread waits more than it works (up to 15 times slower on busy cores).
    with threadpool_limits(1):
        return GridSearchCV(LogisticRegression(max_iter=2000), {"C": STRENGTHS}, cv=held_out).fit(features, labels)


def _folds(count: int, seed: int):
    from sklearn.model_selection import StratifiedKFold

    return StratifiedKFold(count, shuffle=True, random_state=seed)
