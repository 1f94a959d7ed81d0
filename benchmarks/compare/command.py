"""This tree against another commit of it, side by side: the servers and services of both run at once, are asked in
turns, and are held to the ratio within a round. What a change costs is less than the machine's noise between two runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import encode as jobs
from benchmarks import stream as streams
from benchmarks.compare.sides import AFTER, BEFORE, FOLDER, Side, checked_out
from benchmarks.index import encoded
from benchmarks.measures.data import need
from benchmarks.measures.rounds import alternate, row
from benchmarks.measures.senders import ALL_AT_ONCE, IN_TURN, SIDE_BY_SIDE, SINGLES
from benchmarks.search import WORDS, typed
from benchmarks.serving import SEED, draw, exported
from benchmarks.targets.cluster import Cluster
from benchmarks.targets.jobs import Input, new_directory
from benchmarks.targets.server import Server
from model.data.companies import read_companies

LEAST = 0.97  # of the speed before
MOST = round(1 / LEAST, 3)  # of the time before
# Many short rounds: a machine that others share is slow for seconds at a time, and then slows one side alone.
TEXTS, COMPANIES, BLOCK = 96, 4000, 20
JOB, MESSAGES = 500, 100  # companies in a job, messages that a stream is sent at once
ROUNDS = 30
WARM_UP = 6  # rounds that do not count: shapes that are asked for often are compiled meanwhile, beside the other side

Trees = Mapping[str, Path]


def run(data: Path, what: str, before: str, rounds: int = ROUNDS) -> dict:
    trees = {BEFORE: checked_out(before), AFTER: Path.cwd()}
    FOLDER.mkdir(parents=True, exist_ok=True)
    (listed,) = need(data, "companies/listed.jsonl.gz")
    return COMPARED[what](trees, listed, rounds)


def serving(trees: Trees, listed: Path, rounds: int) -> dict:
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


def search(trees: Trees, listed: Path, rounds: int) -> dict:
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
        result[kind] = row("ms, p50", taken[AFTER], taken[BEFORE], most=MOST)
    return result


def encode(trees: Trees, listed: Path, rounds: int) -> dict:
    """The job that `python -m pipelines.encode` is, each time into a new index."""
    given = Input.write(FOLDER.resolve() / "companies.jsonl", jobs.draw(listed, JOB))
    version, result = exported().resolve(), {}
    with Cluster() as cluster, ExitStack() as stack:
        words = ["encode", str(version), str(given.file), str(len(given))]
        sides = {name: stack.enter_context(Side(name, tree, words)) for name, tree in trees.items()}
        for store, new_index in {
            "LanceDB": partial(new_directory, FOLDER.resolve() / "index"),
            "Elasticsearch": partial(cluster.new, "compared"),
        }.items():
            contestants = {name: partial(_ask_of_new, side, new_index) for name, side in sides.items()}
            alternate(contestants, 1)
            taken = alternate(contestants, rounds)
            result[store] = row("texts/s", len(given) / taken[AFTER], len(given) / taken[BEFORE], least=LEAST)
    return result


def stream(trees: Trees, listed: Path, rounds: int) -> dict:
    """How long until a company can be found, at half of the encoder's capacity."""
    texts = draw(listed, (WARM_UP + rounds) * MESSAGES)
    version, result = exported().resolve(), {}
    with Server(version.parent) as server:
        rate = streams.SHARE * streams.capacity(server.address, texts)
    starts = range(0, len(texts), MESSAGES)
    blocks = [(start, texts[start : start + MESSAGES], rate) for start in starts]
    with Cluster() as cluster:
        for store in (streams.LANCE, streams.ELASTIC):
            with ExitStack() as stack:
                sides = {}
                for name, tree in trees.items():
                    fresh = new_directory(FOLDER.resolve() / name) if store == streams.LANCE else cluster.new(name)
                    words = ["stream", str(version), stack.enter_context(fresh)]
                    sides[name] = stack.enter_context(Side(name, tree, words))
                taken = in_turns(sides, blocks)
                result[store] = row("ms, p50", taken[AFTER], taken[BEFORE], most=MOST)
    return result


def in_turns(sides: Mapping[str, Side], questions: Sequence[Any]) -> dict[str, np.ndarray]:
    """What each side answered to each question [rounds], but for the first ones, which warm up."""
    left = {name: iter(questions) for name in sides}
    contestants = {name: partial(_ask_next, side, left[name]) for name, side in sides.items()}
    alternate(contestants, WARM_UP)
    return alternate(contestants, len(questions) - WARM_UP)


def _ask_next(side: Side, questions: Iterator[Any]) -> float:
    return side.ask(next(questions))


def _ask_of_new(side: Side, new_index: Callable[[], AbstractContextManager[str]]) -> float:
    with new_index() as url:
        return side.ask(url)


COMPARED: dict[str, Callable[[Trees, Path, int], dict]] = {
    "serving": serving,
    "encode": encode,
    "stream": stream,
    "search": search,
}
