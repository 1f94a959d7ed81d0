"""This tree against another commit of it, side by side: the servers and services of both run at once, are asked in
turns, and are held to the ratio within a round. What a change costs is less than the machine's noise between two runs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cluster import Cluster
from benchmarks.data import BUILD, need
from benchmarks.index import encoded
from benchmarks.rounds import alternate, row
from benchmarks.search import WORDS, typed
from benchmarks.senders import ALL_AT_ONCE, IN_TURN, SIDE_BY_SIDE, SINGLES
from benchmarks.serving import SEED, draw, exported
from model.data import read_companies
from model.errors import InputError

FOLDER = BUILD / "compare"
SIDE = Path(__file__).with_name("side.py")
BEFORE, AFTER = "before", "after"
LEAST = 0.97  # of the speed before
# Many short rounds: a machine that others share is slow for seconds at a time, and then slows one side alone.
TEXTS, COMPANIES, BLOCK = 96, 4000, 20
ROUNDS = 30
WARM_UP = 6  # rounds that do not count: shapes that are asked for often are compiled meanwhile, beside the other side


class CompareError(InputError):
    """A side that cannot be measured; the message names the file with its own words."""


def run(data: Path, what: str, before: str, rounds: int = ROUNDS) -> dict:
    trees = {BEFORE: checked_out(before), AFTER: Path.cwd()}
    FOLDER.mkdir(parents=True, exist_ok=True)
    (listed,) = need(data, "companies/listed.jsonl.gz")
    if what == "serving":
        return serving(trees, listed, rounds)
    return search(trees, listed, rounds)


def checked_out(revision: str) -> Path:
    """A work tree of its own, kept for the next time."""
    found = subprocess.run(["git", "rev-parse", f"{revision}^{{commit}}"], capture_output=True, text=True)
    if found.returncode:
        raise CompareError(f"--before {revision} is no commit of this repository")
    tree = (FOLDER / found.stdout.strip()[:12]).resolve()
    if not tree.exists():
        words = ["git", "worktree", "add", "--detach", "--force", str(tree), revision]
        subprocess.run(words, check=True, capture_output=True)
    return tree


class Side:
    """A tree's process, idle until it is asked."""

    def __init__(self, name: str, tree: Path, arguments: list[str]):
        self._log = FOLDER.resolve() / f"{name}.log"
        with self._log.open("w") as errors:
            self._process = subprocess.Popen(
                # -P: the script's own folder has modules named like the rooms.
                [sys.executable, "-P", str(SIDE.resolve()), *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=tree,
                env={**os.environ, "PYTHONPATH": str(tree)},
            )
        self._answer()

    def ask(self, question: Any) -> float:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return float(self._answer())

    def __enter__(self) -> Side:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._close()
            raise CompareError(f"one side ended early; {self._log} says why")
        return json.loads(line)


def serving(trees: Mapping[str, Path], listed: Path, rounds: int) -> dict:
    texts = FOLDER.resolve() / "texts.json"
    texts.write_text(json.dumps(draw(listed, TEXTS)))
    version = exported().resolve()
    result = {}
    with ExitStack() as stack:
        sides = {
            name: stack.enter_context(Side(name, tree, ["serving", str(version), str(texts)]))
            for name, tree in trees.items()
        }
        for way in (ALL_AT_ONCE, SIDE_BY_SIDE, IN_TURN, SINGLES):
            taken = in_turns(sides, [way] * (WARM_UP + rounds))
            result[way] = row("texts/s", TEXTS / taken[AFTER], TEXTS / taken[BEFORE], least=LEAST)
    return result


def search(trees: Mapping[str, Path], listed: Path, rounds: int) -> dict:
    companies = list(read_companies(listed).values())[:COMPANIES]
    folder, version = FOLDER.resolve(), exported().resolve()
    result: dict[str, dict] = {}
    files = [folder / "companies.json", folder / f"vectors-{len(companies)}.npy"]
    files[0].write_text(json.dumps(companies))
    encoded([company["description"] for company in companies], files[1])
    with Cluster() as cluster:
        for store in ("LanceDB", "Elasticsearch"):
            with ExitStack() as stack:
                sides = {}
                for name, tree in trees.items():
                    cluster.drop(name)
                    url = str(folder / name) if store == "LanceDB" else f"{cluster.address}/{name}"
                    words = ["search", str(version), *map(str, files), url, str(folder / f"{name}-search.log")]
                    sides[name] = stack.enter_context(Side(name, tree, words))
                result |= {f"{store}: {what}": figures for what, figures in asked(sides, companies, rounds).items()}
    return result


def asked(sides: Mapping[str, Side], companies: list[dict], rounds: int) -> dict:
    """Speed is the inverse of the median question's time; each round asks both sides the same."""
    chance = np.random.default_rng(SEED)
    picked = [companies[place] for place in chance.permutation(len(companies))]
    words = [" ".join(company["description"].split()[:WORDS]) for company in picked]
    things = {
        "similar": [company["id"] for company in picked],
        "vector": words,
        "hybrid": words[::-1],  # the service remembers vectors of texts: none is asked for twice
        "suggest": [typed(company["name"], chance) for company in picked],
    }
    result = {}
    for kind, all_of_them in things.items():
        starts = range(0, (WARM_UP + rounds) * BLOCK, BLOCK)
        taken = in_turns(sides, [(kind, all_of_them[start : start + BLOCK]) for start in starts])
        # Times: what took longer is slower.
        result[kind] = row("ms, p50", taken[AFTER], taken[BEFORE], most=round(1 / LEAST, 3))
    return result


def in_turns(sides: Mapping[str, Side], questions: Sequence[Any]) -> dict[str, np.ndarray]:
    """What each side answered to each question [rounds], but for the first ones, which warm up."""
    left = {name: iter(questions) for name in sides}
    contestants = {name: partial(_ask_next, side, left[name]) for name, side in sides.items()}
    alternate(contestants, WARM_UP)
    return alternate(contestants, len(questions) - WARM_UP)


def _ask_next(side: Side, questions: Iterator[Any]) -> float:
    return side.ask(next(questions))
