"""What people type, and whether a company that answers it comes first: by each mode, on both indices.

The sets are examples/questions/*.tsv: names, short questions, long ones, each with the companies that a fair judge
would accept. Every other question of a set is its development half, which the fusion's weights were chosen on; the
held-out half was not looked at for that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.index import to_documents
from benchmarks.measures.data import BUILD
from benchmarks.targets.cluster import Cluster
from benchmarks.targets.server import Server
from benchmarks.targets.sinks import removed
from index.base import Index, Spec
from index.document import Document
from index.open import open_index
from model.data.companies import read_companies
from model.errors import DataError
from pipelines.options import DEMO_MODEL, EXAMPLES
from serving.client import EmbeddingClient

FOLDER, SETS = BUILD / "questions", Path("examples/questions")
KINDS = ("names", "short", "long")
LANCE, ELASTIC = "LanceDB", "Elasticsearch"
HYBRID, VECTOR, WORDS = "hybrid", "vector", "words"
DEPTH, FIRST_ONES = 50, 3
# Of the default mode, in both halves taken together.
BARS = {"names": ("first", 0.98), "short": ("among 3", 0.95)}

Ask = Callable[[str, np.ndarray], list[str]]


@dataclass(frozen=True)
class Asked:
    """A question, and the companies that a fair judge would take."""

    text: str
    expected: frozenset[str]


@dataclass(frozen=True)
class Score:
    """How well one mode does on one set of questions."""

    mrr: float
    first: float
    among: float


def run(data: Path, sets: Path = SETS, model: Path = Path(DEMO_MODEL)) -> dict:
    """`data` is not needed: the questions are about the examples."""
    if not model.exists():
        raise DataError(f"{model} is not there; `make demo` makes it, or name an export with --model")
    questions = {kind: read(sets / f"{kind}.tsv") for kind in KINDS}
    FOLDER.mkdir(parents=True, exist_ok=True)
    result: dict[str, dict] = {}
    with ExitStack() as stack:
        server = stack.enter_context(Server(model))
        client = stack.enter_context(EmbeddingClient([server.address]))
        cluster = stack.enter_context(Cluster())
        documents = encoded(client, list(read_companies(Path(EXAMPLES)).values()))
        vectors = vectors_of(client, [one.text for asked in questions.values() for one in asked])
        folder = FOLDER / "lance"
        removed(folder)()
        for store, url in {LANCE: str(folder), ELASTIC: f"{cluster.address}/questions"}.items():
            index = loaded(url, documents)
            result |= {f"{store}: {case}": row for case, row in measure(index, questions, vectors).items()}
    return result


def measure(
    index: Index, questions: Mapping[str, Sequence[Asked]], vectors: Mapping[str, np.ndarray]
) -> dict[str, dict]:
    """One row for each kind and mode."""
    rows: dict[str, dict] = {}
    for kind, asked in questions.items():
        scores = {mode: halves(asked, ask, vectors) for mode, ask in modes(index).items()}
        for mode, parts in scores.items():
            rows[f"{kind}, {mode}"] = figures(parts, len(asked))
        rows[f"{kind}, {HYBRID}"] |= held(kind, {mode: parts[-1] for mode, parts in scores.items()})
    return rows


def modes(index: Index) -> dict[str, Ask]:
    model = index.spec().model

    def ids(hits: Sequence) -> list[str]:
        return [hit.document.id for hit in hits]

    return {
        HYBRID: lambda text, vector: index.ranked(text, vector, DEPTH, model=model)[:DEPTH],
        VECTOR: lambda text, vector: ids(index.nearest(vector, DEPTH, model=model)),
        WORDS: lambda text, vector: ids(index.search(text, DEPTH)),
    }


def halves(asked: Sequence[Asked], ask: Ask, vectors: Mapping[str, np.ndarray]) -> tuple[Score, Score, Score]:
    """Of the development half, of the held-out one, of all."""
    places = [place(ask(one.text, vectors[one.text]), one.expected) for one in asked]
    return score(places[0::2]), score(places[1::2]), score(places)


def place(found: Sequence[str], expected: frozenset[str]) -> int | None:
    """Of the first that is expected, counted from 1."""
    return next((number for number, id in enumerate(found, start=1) if id in expected), None)


def score(places: Sequence[int | None]) -> Score:
    return Score(
        mrr=float(np.mean([1 / at if at else 0.0 for at in places])),
        first=float(np.mean([at == 1 for at in places])),
        among=float(np.mean([at is not None and at <= FIRST_ONES for at in places])),
    )


def figures(parts: tuple[Score, Score, Score], count: int) -> dict:
    row: dict[str, object] = {"questions": count}
    for half, one in zip(("", " held out", " of all"), parts, strict=True):
        names = ("MRR", "first", f"among {FIRST_ONES}")
        row |= {
            f"{name}{half}": round(value, 3) for name, value in zip(names, (one.mrr, one.first, one.among), strict=True)
        }
    return row


def held(kind: str, scores: Mapping[str, Score]) -> dict:
    """The default mode is at least as good as the better of the others, and as the bar of its kind."""
    ours, others = scores[HYBRID], (scores[VECTOR], scores[WORDS])
    met = ours.mrr >= max(one.mrr for one in others) and ours.among >= max(one.among for one in others)
    bar = "the better of the others"
    if kind in BARS:
        name, least = BARS[kind]
        met &= (ours.first if name == "first" else ours.among) >= least
        bar += f", {name} >= {least:g}"
    return {"bar": bar, "met": "yes" if met else "no"}


def read(file: Path) -> list[Asked]:
    """Tab-separated: the question, and the ids that answer it with "|" between them."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()[1:]
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error}") from error
    return list(_rows(file, lines))


def _rows(file: Path, lines: Sequence[str]) -> Iterator[Asked]:
    for number, line in enumerate(lines, start=2):
        text, _, ids = line.partition("\t")
        if not text.strip() or not ids.strip():
            raise DataError(f"{file}:{number}: a question, a tab and the ids that answer it are expected, got {line!r}")
        yield Asked(text, frozenset(ids.split("|")))


def encoded(client: EmbeddingClient, companies: Sequence[dict]) -> list[Document]:
    """As the pipeline would: the model's own recipe, tags and all."""
    contract = client.contract()
    made, _ = client.embed([contract.recipe.render(company) for company in companies])
    documents = to_documents(companies, made, contract.fingerprint)
    return [
        replace(one, tags=tuple(company.get("tags") or ())) for one, company in zip(documents, companies, strict=True)
    ]


def vectors_of(client: EmbeddingClient, texts: Sequence[str]) -> dict[str, np.ndarray]:
    """As the search service would: a question stands where a description does."""
    recipe = client.contract().recipe
    made, _ = client.embed([recipe.render({"description": text}) for text in texts])
    return dict(zip(texts, made, strict=True))


def loaded(url: str, documents: Sequence[Document]) -> Index:
    first = documents[0]
    assert first.embedding is not None
    index = open_index(url, create=Spec(first.model, len(first.embedding)))
    with index.loading():
        index.write(documents)
    index.refresh()
    return index
