"""Models published, an index moved and moved back while a stream goes on: each text is of its model's own recipe."""

import itertools
import json
import threading
import time

import numpy as np
import pytest
from commands import answer
from companies import DIMENSION, MODEL, OTHER_MODEL
from encoder import POISON, Encoder, vector_of
from stages import Stages
from version_folders import FACTS, write_version
from waiting import wait_until

from index.base import Spec
from index.document import Document, text_hash
from index.errors import WrongModel
from index.open import open_index
from model.contract import DESCRIPTION_ONLY, INDUSTRY_FIRST, Contract
from pipelines import services
from pipelines.records import Company
from pipelines.reindex import __main__ as reindex
from pipelines.services import Services
from pipelines.transforms.skip_unchanged import text_of
from serving.endpoint.channel import ModelNotServed, ServingUnavailable
from serving.own_server import OwnServer

WIDE = 6
CONTRACTS = {
    MODEL: Contract(MODEL, DIMENSION, 128, INDUSTRY_FIRST),
    OTHER_MODEL: Contract(OTHER_MODEL, WIDE, 128, DESCRIPTION_ONLY),
}
COMPANIES, BATCH = 40, 5
_numbers = itertools.count(1)


@pytest.fixture
def encoder():
    running = Encoder()
    yield running
    running.stop()


@pytest.fixture(params=["lance", "elasticsearch"])
def url(request, tmp_path):
    if request.param == "lance":
        return str(tmp_path / "index")
    return f"{request.getfixturevalue('elasticsearch_server').address}/switched-{next(_numbers)}"


@pytest.fixture
def index(url):
    return open_index(url, create=Spec(MODEL, DIMENSION))


@pytest.fixture
def setting(url, index, encoder):
    yield Services((encoder.address,), url, encoder.contract, deadline=20.0)
    services.forget(url)


@pytest.fixture
def stages(setting):
    opened = Stages(setting)
    yield opened
    opened.close()


@pytest.fixture
def move(url, encoder, tmp_path, capsys):
    """The real command, to the endpoint's newest model or back."""

    def run(*flags):
        where = (*flags, "--serving", encoder.address)
        code, _, wrong = answer(
            capsys, reindex.main, "--index", url, "--dead_letters", str(tmp_path / "letters"), *where
        )
        assert code == 0, wrong

    return run


def arrived(id, version, **fields):
    fields = {"description": f"Makes {id}, {version}", "industry": "Metal", **fields}
    return Company(Document(id, version, **fields), "source")


def publish(encoder, keep=2):
    encoder.publish(OTHER_MODEL, DESCRIPTION_ONLY, WIDE, keep)


def stored(index) -> dict[str, Document]:
    """Each of them of the index's model through and through: text, hash, vector and name."""
    index.refresh()
    contract, found = CONTRACTS[index.spec().model], {}
    for one in (document for page in index.scan() for document in page):
        text = text_of(one, contract.recipe)
        assert (one.model, one.text_hash) == (contract.fingerprint, text_hash(text)), one
        np.testing.assert_allclose(one.embedding, vector_of(text, contract.dimension), rtol=1e-3, atol=1e-3)
        found[one.id] = one
    return found


def test_a_batch_that_was_encoded_before_the_move_is_written_by_the_new_recipe(stages, encoder, index, move):
    done = stages.encode(stages.skip_unchanged([arrived("a", 2), Company(Document.tombstone("b", 2), "s")]).tasks)
    assert [task.document.model for task in done.tasks] == [MODEL, ""]  # the premise
    publish(encoder)
    move()
    after = stages.write(done.tasks)
    assert (after.counts["indexed"], after.counts["deleted"], after.dead, after.tasks) == (1, 1, [], [])
    assert index.spec() == Spec(OTHER_MODEL, WIDE) and list(stored(index)) == ["a"]
    assert encoder.texts[-1] == "Makes a, 2"


def test_a_batch_that_was_planned_before_the_move_is_encoded_by_the_new_recipe(stages, encoder, index, move):
    tasks = stages.skip_unchanged([arrived("a", 2)]).tasks
    assert tasks[0].text == "Metal. Makes a, 2"  # the premise
    publish(encoder, keep=1)
    move()
    done = stages.encode(tasks)
    assert [(task.document.model, task.text) for task in done.tasks] == [(OTHER_MODEL, "Makes a, 2")]
    stages.write(done.tasks)
    assert list(stored(index)) == ["a"]


def test_what_only_moves_on_keeps_its_vector_under_either_model(stages, encoder, index, move):
    fields = {"description": "Makes anvils"}
    stages.all([arrived("a", 1, **fields)])
    tasks = stages.skip_unchanged([arrived("a", 2, **fields)]).tasks
    assert [task.moves_on for task in tasks] == [True]  # the premise
    publish(encoder)
    move()
    assert stages.write(tasks).counts["unchanged"] == 1
    assert stored(index)["a"].version == 2


def test_no_company_is_buried_for_the_recipe_of_a_model_that_the_index_has_no_more(stages, encoder, index, move):
    """The first recipe makes a text of the industry alone; the other one makes none."""
    stages.all([arrived("a", 1)])
    publish(encoder)
    move()
    assert [letter.stage for letter in stages.all([arrived("b", 2, description="")]).dead] == ["encode"]
    move("--rollback")
    assert stages.all([arrived("c", 3, description="")]).dead == []
    assert stored(index)["c"].text_hash == text_hash("Metal.")


def test_a_text_that_the_index_s_model_refuses_is_buried_at_once(stages, encoder, index):
    publish(encoder)
    done = stages.all([arrived("a", 1), arrived("b", 1, description=f"All {POISON}")])
    assert (done.counts["indexed"], [letter.record["id"] for letter in done.dead]) == (1, ["b"])


def test_until_the_move_a_stream_goes_on_with_the_version_that_is_kept(stages, encoder, index):
    publish(encoder)
    assert stages.all([arrived("a", 2)]).counts["indexed"] == 1
    assert encoder.texts == ["Metal. Makes a, 2"] and stored(index)["a"].model == MODEL


def test_where_the_version_is_not_kept_a_stream_waits_for_the_move(stages, encoder, index, move):
    publish(encoder, keep=1)
    waiting = threading.Thread(target=stages.all, args=([arrived("a", 2)],))
    waiting.start()
    waiting.join(1.0)
    assert waiting.is_alive() and stored(index) == {}
    move()
    waiting.join(10.0)
    assert not waiting.is_alive() and stored(index)["a"].model == OTHER_MODEL


def test_a_bundle_waits_within_its_deadline_and_fails_then(setting, encoder, monkeypatch):
    """The runner tries it again."""
    stages = Stages(Services(setting.serving, setting.index_url, setting.contract, deadline=1.0))
    tasks = stages.skip_unchanged([arrived("a", 2)]).tasks
    publish(encoder, keep=1)
    began = time.monotonic()
    with pytest.raises(ModelNotServed, match=r"pipelines.reindex"):
        stages.encode(tasks)
    assert 1.0 <= time.monotonic() - began < 5.0
    stages.close()


def test_what_waits_ends_when_the_step_is_closed(stages, encoder):
    publish(encoder, keep=1)
    failed = []

    def wait():
        try:
            stages.all([arrived("a", 2)])
        except ServingUnavailable as error:  # a model that is not served, or the closed client, whichever is met first
            failed.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    waiting.join(0.5)
    stages.close()
    waiting.join(10.0)
    assert not waiting.is_alive() and len(failed) == 1


# at the start of a job


def test_a_job_starts_where_the_index_s_model_is_served_newest_or_not(setting, encoder):
    publish(encoder)
    launched = Services(setting.serving, setting.index_url, encoder.contract)
    assert launched.contract.fingerprint == OTHER_MODEL  # the premise
    assert launched.created_index().spec().model == MODEL


def test_a_job_is_refused_where_the_index_s_model_is_not_served_at_all(setting, encoder):
    publish(encoder, keep=1)
    launched = Services(setting.serving, setting.index_url, encoder.contract)
    with pytest.raises(WrongModel, match=r"python -m pipelines.reindex --index"):
        launched.created_index()


def test_a_new_index_is_made_for_the_newest_model(encoder, url):
    publish(encoder)
    try:
        made = Services((encoder.address,), url, encoder.contract).created_index()
        assert made.spec() == Spec(OTHER_MODEL, WIDE)
    finally:
        services.forget(url)


# a stream


class Stream(threading.Thread):
    """Batches of one company after the other, again and again, until it is stopped; what fails is kept."""

    def __init__(self, setting, one_step: bool):
        super().__init__(daemon=True)
        self._stages = [Stages(setting) for _ in range(1 if one_step else 3)]  # each step has its own
        self.sent: dict[str, int] = {}  # the newest version of each id that is to be in the index
        self.batches, self.failure, self.stopping = 0, None, threading.Event()

    def run(self):
        try:
            for number in itertools.count(1):
                if self.stopping.is_set():
                    return
                ids = [f"c{(number * BATCH + place) % COMPANIES}" for place in range(BATCH)]
                self._pass([arrived(id, number) for id in ids])
                self.sent |= dict.fromkeys(ids, number)
                self.batches = number
        except BaseException as error:
            self.failure = error

    def _pass(self, companies):
        if len(self._stages) == 1:
            done = self._stages[0].all(companies)
        else:
            skip, encode, write = self._stages
            done = skip.skip_unchanged(companies)
            time.sleep(0.02)  # as between the steps of a busy worker
            done = done.then(encode.encode)
            time.sleep(0.02)
            done = done.then(write.write)
        assert done.dead == [] and done.tasks == []

    def goes_on(self, batches=2 * COMPANIES // BATCH):
        """Until every company has come again."""
        before = self.batches
        wait_until(lambda: self.failure is not None or self.batches >= before + batches, seconds=60)
        assert self.failure is None, self.failure

    def end(self):
        self.stopping.set()
        self.join(60)
        for stages in self._stages:
            stages.close()
        assert self.failure is None and not self.is_alive()


@pytest.mark.parametrize("one_step", [True, False], ids=["all stages in one", "a step each"])
@pytest.mark.parametrize("keep", [2, 1], ids=["kept", "not kept"])
def test_a_stream_goes_through_publish_reindex_and_rollback(setting, index, encoder, move, one_step, keep):
    stream = Stream(setting, one_step)
    stream.start()
    try:
        stream.goes_on()
        publish(encoder, keep)
        if keep > 1:
            stream.goes_on()
        move()
        stream.goes_on()
        assert {one.model for one in stored(index).values()} == {OTHER_MODEL}
        encoder.versions = {3: CONTRACTS[MODEL], 2: CONTRACTS[OTHER_MODEL]}
        move("--rollback")
        stream.goes_on()
        move()  # again, to the newest
        stream.goes_on()
    finally:
        stream.end()
    assert {id: one.version for id, one in stored(index).items()} == stream.sent


def test_an_own_server_has_the_contracts_of_the_versions_it_keeps(tmp_path):
    """Without being started."""
    contracts = [*CONTRACTS.values(), Contract("f" * 16, 4, 128, DESCRIPTION_ONLY)]
    for number, contract in enumerate(contracts, start=1):
        facts = write_version(tmp_path / str(number)) / FACTS
        facts.write_text(json.dumps({**json.loads(facts.read_text()), "contract": json.loads(contract.to_json())}))
    own = OwnServer(str(tmp_path), compiled=False)
    assert own.contract() == contracts[2] and own.contract(OTHER_MODEL) == contracts[1]
    with pytest.raises(ModelNotServed, match=r"pipelines.reindex"):
        own.contract(MODEL)


def test_waits_are_short_enough_for_messages_to_stay_fresh():
    assert services.LONGEST_WAIT <= 1.0
