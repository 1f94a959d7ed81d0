"""The embedded server with real models: one published, the index moved to it and back, under searches and a stream."""

import itertools
import random
import shutil
import threading
import time
from collections import Counter
from contextlib import ExitStack

import httpx
import numpy as np
import pytest
from browser import served
from embedded import EmbeddedServer
from made_once import made_once
from stages import Stages
from trades import TINY, TRADES
from waiting import wait_until

from index.document import Document, text_hash
from index.open import open_index
from model.contract import INDUSTRY_FIRST
from pipelines import services
from pipelines.records import Company
from pipelines.reindex import __main__ as reindex
from pipelines.services import Services
from pipelines.transforms.skip_unchanged import text_of
from search.app import create_app
from search.settings import Settings
from serving import publish
from serving.client import EmbeddingClient

COMPANIES = 30
STILL, BUSY = "still", "busy"  # the sectors of companies that stay as they are, and of those that a stream changes
PACE = 0.05  # seconds between two searches of one searcher
NEAR = 0.02  # scores of vectors that Elasticsearch keeps in int8


@pytest.fixture(scope="module")
def other_export(similar_pairs, tmp_path_factory):
    """A model of another width, with another recipe."""
    from model.export import main as export
    from model.train import main as train

    def make(folder):
        run = ["--pairs", str(similar_pairs), "--out", str(folder / "run"), "--prior", "0.33", "--epochs", "1"]
        assert train([*run, *TINY, "--encoder", "scratch:L1-H48", "--contrastive", "1", "--dev", "20%"]) == 0
        made = ["--model", str(folder / "run"), "--to", str(folder / "pause"), "--recipe", INDUSTRY_FIRST]
        assert export(made) == 0

    return made_once(tmp_path_factory, "other-width", make) / "pause" / "1"


@pytest.fixture
def base(exports, tmp_path):
    shutil.copytree(exports[0], tmp_path / "models" / "1")
    return tmp_path / "models"


@pytest.fixture
def server(base):
    with EmbeddedServer(base, "--keep_versions=2", "--xla_cpu_compilation_enabled=false", rest=False) as running:
        yield running


@pytest.fixture
def client(server):
    with EmbeddingClient([server.address], deadline=5.0) as connected:
        yield connected


@pytest.fixture(params=["lance", "elasticsearch"])
def url(request, tmp_path):
    if request.param == "lance":
        return str(tmp_path / "index")
    return f"{request.getfixturevalue('elasticsearch_server').address}/really-switched"


@pytest.fixture
def setting(url, server, client):
    yield Services((server.address,), url, client.contract())
    services.forget(url)


def company(id, version, sector):
    chosen = random.Random(f"{id} {version}")
    trade = chosen.choice(list(TRADES))
    words = " ".join(chosen.choices(TRADES[trade].split(), k=4))
    return Company(Document(id, version, name=id, description=f"{words} {id}", industry=trade, sector=sector), "source")


class Beside(threading.Thread):
    """Does the same again and again until it is stopped; what fails is kept, and ends it."""

    def __init__(self, work):
        super().__init__(daemon=True)
        self._work, self.times, self.failure, self.stopping = work, 0, None, threading.Event()

    def run(self):
        try:
            while not self.stopping.is_set():
                self._work(self.times)
                self.times += 1
        except BaseException as error:
            self.failure = error
            raise

    def end(self):
        self.stopping.set()
        self.join(60)
        assert self.failure is None and not self.is_alive()


class Searches:
    """What was asked and what came: every list must be that of one model, and none may fail."""

    def __init__(self, address):
        self._asking = httpx.Client(base_url=address, timeout=30)
        self._numbers = itertools.count()
        self.failed: list[str] = []
        self.lists: list[tuple[str, str | None, str | None, dict[str, float]]] = []  # model, text, id, scores

    def ask(self, _):
        number = next(self._numbers)
        time.sleep(PACE)
        text = " ".join(random.Random(number).choices(TRADES["banking"].split() + TRADES["cars"].split(), k=3))
        text, id = (f"{text} {number}", None) if number % 3 else (None, f"s{number % COMPANIES}")
        if text:
            asked = {"text": text, "mode": ("hybrid", "vector")[number % 2], "filters": {"sector": [STILL]}}
            answered = self._asking.post("/v1/search", json=asked)
        else:
            answered = self._asking.get(f"/v1/companies/{id}/similar?sector={STILL}")
        if answered.status_code != 200:
            self.failed.append(answered.text)
            return
        found = answered.json()
        scores = {hit["company"]["id"]: hit["score"] for hit in found["hits"]}
        self.lists.append((found["model"], text, id, scores))

    def close(self):
        self._asking.close()


def cosines(client, model):
    """Of a text or a company to all that stay as they are, by this model alone."""
    recipe = client.contract(model).recipe
    still = [company(f"s{number}", 1, STILL).document for number in range(COMPANIES)]
    vectors, _ = client.embed([text_of(one, recipe) for one in still], model)

    def to(text, id):
        towards = client.embed([recipe.render({"description": text})], model)[0][0] if text else vectors[int(id[1:])]
        return dict(zip((one.id for one in still), (vectors @ towards).tolist(), strict=True))

    return to


def check_documents(index, client):
    """Text, hash, vector and fingerprint of each are of the index's model."""
    index.refresh()
    model = index.spec().model
    recipe = client.contract(model).recipe
    documents = [one for page in index.scan() for one in page]
    texts = [text_of(one, recipe) for one in documents]
    vectors, _ = client.embed(texts, model)
    for one, text, vector in zip(documents, texts, vectors, strict=True):
        assert (one.model, one.text_hash) == (model, text_hash(text))
        np.testing.assert_allclose(one.embedding, vector, atol=0.01)
    return Counter(one.sector for one in documents)


def test_publish_move_and_rollback_fail_no_search_and_mix_nothing(
    setting, url, server, client, base, other_export, tmp_path
):
    writer, stages = setting.created_index(), Stages(setting)
    first = writer.spec().model
    stages.all([company(f"s{number}", 1, STILL) for number in range(COMPANIES)])
    writer.refresh()
    index = open_index(url, retry_seconds=2.0)  # as the service has it
    stream = Beside(
        lambda times: stages.all([company(f"b{(times + n) % COMPANIES}", times + 1, BUSY) for n in range(5)])
    )

    def run(main, *flags):
        assert main([*map(str, flags)]) == 0

    def goes_on():
        """The model of the last list, after so many more searches and writes."""
        lists, writes = len(searches.lists) + 40, stream.times + 5

        def enough():
            return len(searches.lists) >= lists and stream.times >= writes

        wait_until(lambda: searches.failed or stream.failure or enough(), seconds=60)
        assert searches.failed == [] and stream.failure is None
        return searches.lists[-1][0]

    with ExitStack() as stack:
        searches = Searches(stack.enter_context(served(create_app(index, client, Settings(rate=0)))))
        stack.callback(stages.close)
        stack.callback(searches.close)
        for thread in (stream, Beside(searches.ask), Beside(searches.ask)):
            stack.callback(thread.end)
            thread.start()
        assert goes_on() == first
        run(publish.main, "--from", other_export, "--to", base)
        wait_until(lambda: len(client.served()) == 2, seconds=60)
        second = next(iter(client.served()))
        assert second != first and goes_on() == first  # published, and nobody is searched away
        assert client.contract(second).text_recipe != client.contract(first).text_recipe  # the premise
        move = ("--index", url, "--dead_letters", tmp_path / "letters")
        run(reindex.main, *move, "--serving", server.address)
        assert goes_on() == second
        run(reindex.main, *move, "--rollback", "--serving", server.address)
        assert goes_on() == first
        run(reindex.main, *move, "--serving", server.address)
        assert goes_on() == second
    expected = {model: cosines(client, model) for model in (first, second)}
    for model, text, id, scores in searches.lists:
        true = expected[model](text, id)
        assert scores and scores == pytest.approx({one: true[one] for one in scores}, abs=NEAR)
    assert check_documents(writer, client) == {STILL: COMPANIES, BUSY: COMPANIES}
