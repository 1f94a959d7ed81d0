"""The live model and a candidate side by side: on answers that neither was trained on, and on what is always asked."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np
from tqdm import tqdm

from common.errors import InputError
from model.contract import Contract
from model.data.companies import read_companies
from model.data.tsv import read_columns
from model.evaluate.paired import DRAWS, LEVEL, MARGIN, Comparison, compare, pair_scores, reciprocal_ranks, rows_of
from search.feedback.store import NOT_SIMILAR
from search.feedback.verdicts import QUERY
from serving.storage.base import FACTS_FILE

HELD_OUT, KNOWN, QUESTIONS = "answers held out", "known pairs", "questions"
TEXTS_AT_ONCE = 32
MOST_PAIRS = 2000  # of either kind, drawn where there are more
RULE = (
    f"no worse: the {LEVEL:.0%} interval of the difference, by {DRAWS:,} bootstrap draws over what was asked about, "
    f"reaches 0 on the {HELD_OUT}, -{MARGIN:g} on what else is asked"
)

Scores = Callable[[np.ndarray], np.ndarray]
Encode = Callable[[list[dict]], np.ndarray]


@dataclass(frozen=True)
class Task:
    """Something to score a model's vectors by, of companies first and then of questions."""

    name: str
    groups: list[str]
    scores: Scores
    margin: float = MARGIN


@dataclass(frozen=True)
class Evaluation:
    """Files: companies as search.labels writes them, answers held out, pairs known before, and questions."""

    companies: Path
    held_out: Path
    known: Path
    questions: Sequence[Path]

    def compare(self, live: Path, candidate: Path) -> list[Comparison]:
        """Of two versions as they are served."""
        companies = list(read_companies(self.companies).values())
        asked = list(self._asked({company["id"] for company in companies}))
        records = companies + [{"description": text} for text, _ in asked]
        tasks = list(self._tasks([company["id"] for company in companies], asked))
        former, next_one = (encoder(version, name)(records) for version, name in ((live, "live"), (candidate, "new")))
        return [
            compare(task.name, task.groups, task.scores(former), task.scores(next_one), task.margin) for task in tasks
        ]

    def _tasks(self, ids: list[str], asked: list[tuple[str, list[str]]]) -> Iterator[Task]:
        others = np.array([not id.startswith(QUERY) for id in ids])
        for name, file in ((HELD_OUT, self.held_out), (KNOWN, self.known)):
            rows = [row for row in _labelled(file) if {row[0], row[1]} <= set(ids)]
            if rows:
                yield _pairs(name, ids, _some(rows), others)
        if asked:
            place = {id: row for row, id in enumerate(ids)}
            right = [[place[id] for id in expected] for _, expected in asked]
            count = len(ids)
            yield Task(
                QUESTIONS,
                [text for text, _ in asked],
                lambda unit: reciprocal_ranks(unit[count:], unit[:count] * others[:, None], right),
            )

    def _asked(self, there: set[str]) -> Iterator[tuple[str, list[str]]]:
        """Those that a company here answers."""
        for file in self.questions:
            for _, (text, expected) in read_columns(file, ["question", "expected"]):
                known = [id for id in expected.split("|") if id in there]
                if known:
                    yield text, known


def _labelled(file: Path) -> list[tuple[str, str, str]]:
    try:
        rows = read_columns(file, ["left", "right", "label"])
    except InputError:
        if len(file.read_text(encoding="utf-8").splitlines()) == 1:  # a header alone: nothing was held out
            return []
        raise
    return [(left, right, label) for _, (left, right, label) in rows if label]


def _some(rows: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    if len(rows) <= MOST_PAIRS:
        return rows
    chosen = np.random.default_rng(0).permutation(len(rows))[:MOST_PAIRS]
    return [rows[number] for number in sorted(chosen)]


def _pairs(name: str, ids: list[str], rows: list[tuple[str, str, str]], others: np.ndarray) -> Task:
    pairs = rows_of(ids, [(left, right) for left, right, _ in rows])
    alike = np.array([label != NOT_SIMILAR for _, _, label in rows])
    count = len(ids)
    # Answers are what it was trained for: on those it must not lose anything that chance does not explain.
    margin = 0.0 if name == HELD_OUT else MARGIN
    groups = [left for left, _, _ in rows]
    return Task(name, groups, lambda unit: pair_scores(unit[:count], pairs, alike, others), margin)


def encoder(version: Path, name: str) -> Encode:
    """Companies to unit vectors by a version as it is served, with its own recipe."""
    from common.runtime import tensorflow as tf  # takes seconds

    import_module("tensorflow_text")  # registers the tokenizer's ops
    facts = json.loads((version / FACTS_FILE).read_text(encoding="utf-8"))
    recipe = Contract.from_json(json.dumps(facts["contract"])).recipe
    signature = tf.saved_model.load(str(version)).signatures["serving_default"]

    def encode(records: list[dict]) -> np.ndarray:
        texts = [recipe.render(record) for record in records]
        order = np.argsort([len(text) for text in texts], kind="stable")
        vectors: list[np.ndarray] = [np.zeros(0)] * len(texts)
        with tqdm(total=len(texts), desc=f"{name} model", unit="text", file=sys.stderr, disable=None) as bar:
            for start in range(0, len(order), TEXTS_AT_ONCE):
                rows = order[start : start + TEXTS_AT_ONCE]
                made = signature(text=tf.constant([texts[row] for row in rows]))["embedding"].numpy()
                for row, vector in zip(rows, made, strict=True):
                    vectors[row] = vector
                bar.update(len(rows))
        return np.stack(vectors)

    return encode


def table(found: Sequence[Comparison]) -> Iterator[str]:
    yield f"{'compared on':<18}{'items':>7}{'live':>8}{'new':>8}  {'difference':<28}"
    for one in found:
        difference = f"{one.candidate - one.live:+.3f} ({one.low:+.3f} to {one.high:+.3f})"
        verdict = "worse" if one.is_worse else "no worse"
        yield f"{one.name:<18}{one.items:>7,}{one.live:>8.3f}{one.candidate:>8.3f}  {difference:<28}{verdict}"
    yield RULE
