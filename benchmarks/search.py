"""The search service over both indices: its answers against the stores' own, names as they are typed, many people."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from benchmarks.index import encoded, to_documents
from benchmarks.measures.data import BUILD, need
from benchmarks.measures.users import crowd
from benchmarks.peers.bare_search import Bare, in_elasticsearch, in_lancedb
from benchmarks.serving import SEED, exported
from benchmarks.targets.cluster import Cluster
from benchmarks.targets.server import Server
from benchmarks.targets.service import Caller, Service
from benchmarks.targets.sinks import Sink, removed
from index.base import Spec
from index.document import Document
from model.data.companies import read_companies
from serving.client import EmbeddingClient

FOLDER = BUILD / "search"
QUESTIONS, TEXTS, PREFIXES, WARM_UP = 1000, 150, 500, 100
# Of the first comparison: a thousand searches later Elasticsearch has compiled what it runs, and takes half as long.
FIRST_WARM_UP = 500
BLOCK = 25  # questions that one contestant is asked before the other has its turn
PEOPLE, MINUTES = 50, 1.0
TIMES, MORE = 1.2, 5.0  # at most so many times the bare call, and so many ms
SUGGEST = 50.0  # ms, 99 of 100
WORDS = 12  # of a description, as something that a person types
LANCE, ELASTIC = "LanceDB", "Elasticsearch"

Asked = TypeVar("Asked")


@dataclass(frozen=True)
class Market:
    """What is asked, and those who answer it."""

    documents: Sequence[Document]
    service: tuple[str, int]
    client: EmbeddingClient
    bare: Bare


def run(data: Path, questions: int = QUESTIONS, minutes: float = MINUTES) -> dict:
    (listed,) = need(data, "companies/listed.jsonl.gz")
    companies = list(read_companies(listed).values())
    vectors = encoded([company["description"] for company in companies])
    FOLDER.mkdir(parents=True, exist_ok=True)
    result: dict[str, dict] = {}
    with ExitStack() as stack:
        server = stack.enter_context(Server(exported().parent))
        cluster = stack.enter_context(Cluster())
        client = stack.enter_context(EmbeddingClient([server.address]))
        documents = to_documents(companies, vectors, client.contract().fingerprint)
        folder = FOLDER / "index"
        for name, url in {LANCE: str(folder), ELASTIC: f"{cluster.address}/search"}.items():
            physical = load(url, documents, removed(folder) if name == LANCE else lambda: cluster.drop("search"))
            bare = (
                in_lancedb(folder, physical)
                if name == LANCE
                else in_elasticsearch(cluster.client, "search", vectors.shape[1], len(documents))
            )
            with Service(url, server.address, FOLDER / f"{name}.log") as service:
                market = Market(documents, service.address, client, bare)
                result |= {f"{name}: {what}": figures for what, figures in measure(market, questions, minutes).items()}
    return result


def load(url: str, documents: Sequence[Document], drop: Callable[[], object]) -> str:
    """Into a new index; its name in the store."""
    first = documents[0]
    assert first.embedding is not None
    sink = Sink(url, Spec(first.model, len(first.embedding)), documents, drop)
    sink()
    index = sink.index()
    index.optimise()
    return index.status().physical


def measure(market: Market, questions: int, minutes: float) -> dict[str, dict]:
    chance, caller = np.random.default_rng(SEED), Caller(market.service)
    picked = [market.documents[row] for row in chance.permutation(len(market.documents))]
    asked, others = picked[: FIRST_WARM_UP + questions], picked[FIRST_WARM_UP + questions :]
    sentences = [in_words(document) for document in others[: 2 * (WARM_UP + TEXTS)]]

    def encode_and_ask(text: str) -> None:
        market.bare(market.client.embed([text])[0][0])

    similar = compared(asked, lambda one: caller.similar(one.id), lambda one: market.bare(one.embedding), FIRST_WARM_UP)
    # The service remembers vectors of texts: none is asked for twice.
    half = len(sentences) // 2
    vector = compared(sentences[:half], lambda text: caller.search(text, "vector"), encode_and_ask, WARM_UP)
    hybrid = compared(sentences[half:], lambda text: caller.search(text, "hybrid"), encode_and_ask, WARM_UP)
    suggested = timed(caller.suggest, prefixes(picked, chance))
    caller.close()
    return {
        "similar / bare": held(*similar),
        "text, by vector / encode and bare": held(*vector),
        "text, with words too / encode and bare": held(*hybrid, bar=False),
        "suggest": {
            **percentiles(suggested),
            "bar": f"p99 <= {SUGGEST:g} ms",
            "met": "yes" if np.percentile(suggested, 99) <= SUGGEST else "no",
        },
        f"{PEOPLE} people at once": crowded(market, picked, minutes),
    }


def compared(
    asked: Sequence[Asked],
    ours: Callable[[Asked], object],
    theirs: Callable[[Asked], object],
    warm_up: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Milliseconds of each question but the first ones, to both alike; they take turns."""
    for ask in (ours, theirs):
        timed(ask, asked[:warm_up])
    taken: tuple[list[float], list[float]] = ([], [])
    for start in range(warm_up, len(asked), BLOCK):
        for ask, list_ in zip((ours, theirs), taken, strict=True):
            list_ += timed(ask, asked[start : start + BLOCK])
    return np.array(taken[0]), np.array(taken[1])


def timed(ask: Callable[[Asked], object], asked: Iterable[Asked]) -> list[float]:
    taken = []
    for one in asked:
        began = time.perf_counter()
        ask(one)
        taken.append(1e3 * (time.perf_counter() - began))
    return taken


def held(ours: np.ndarray, theirs: np.ndarray, bar: bool = True) -> dict:
    figures = {**percentiles(ours), **{f"bare {name}": value for name, value in percentiles(theirs).items()}}
    if not bar:
        return figures
    met = all(np.percentile(ours, share) <= TIMES * np.percentile(theirs, share) + MORE for share in (50, 99))
    return {**figures, "bar": f"<= {TIMES:g} x bare + {MORE:g} ms", "met": "yes" if met else "no"}


def percentiles(taken: Sequence[float] | np.ndarray) -> dict[str, float]:
    return {f"p{share} ms": round(float(np.percentile(taken, share)), 1) for share in (50, 99)}


def prefixes(documents: Sequence[Document], chance: np.random.Generator) -> list[str]:
    """What stands in the box while somebody types a name."""
    names = [document.name for document in documents if document.name][:PREFIXES]
    return [typed(name, chance) for name in names]


def typed(name: str, chance: np.random.Generator) -> str:
    return name[: int(chance.integers(1, 9))]


def in_words(document: Document) -> str:
    return " ".join(document.description.split()[:WORDS])


def crowded(market: Market, picked: Sequence[Document], minutes: float) -> dict:
    names = [document for document in picked if document.name]

    def ask(caller: Caller, chance: np.random.Generator) -> None:
        one = names[int(chance.integers(len(names)))]
        what = chance.random()
        if what < 0.5:
            caller.similar(one.id)
        elif what < 0.8:
            caller.suggest(typed(one.name, chance))
        elif what < 0.9:
            caller.search(in_words(one), "hybrid")
        else:
            caller.facets()

    found = crowd(market.service, PEOPLE, minutes, ask)
    errors = sum(found.errors.values())
    return {
        **percentiles(1e3 * np.array(found.seconds)),
        "questions": len(found.seconds),
        "errors": json.dumps(found.errors) if errors else 0,
        "bar": "no error",
        "met": "no" if errors else "yes",
    }
