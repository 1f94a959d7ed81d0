"""What single steps do that a whole run shows only by chance."""

import threading
from dataclasses import replace

import pytest
from companies import DIMENSION, MODEL, company, statuses
from encoder import POISON, vector_of

from index.base import Spec
from index.open import open_index
from model.contract import Contract
from pipelines import services
from pipelines.services import Services
from pipelines.transforms import encode as encoding
from pipelines.transforms.batch import Batch, Task
from pipelines.transforms.encode import Encode, encode
from pipelines.transforms.write import Write


@pytest.fixture
def setting(tmp_path, encoder):
    url = str(tmp_path / "index")
    open_index(url, create=Spec(MODEL, DIMENSION))
    yield Services((encoder.address,), url, Contract(MODEL, DIMENSION, 128, "{description}"))
    services.forget(url)


def values(outputs):
    return [getattr(getattr(one, "value", one), "value", getattr(one, "value", one)) for one in outputs]


def written(setting, tasks):
    write = Write(setting, 2)
    write.setup()
    write.start_bundle()
    given = values([*write.process(tasks, None, 0), *write.finish_bundle()])
    write.teardown()
    return given


def test_a_vector_that_somebody_replaced_in_between_is_made_anew(setting, encoder):
    index = setting.index()
    assert statuses(index.write([company("a", 1, description="One")])) == ["indexed"]
    kept = company("a", 3, None, description="One")  # planned while "One" was stored
    assert statuses(index.write([company("a", 2, description="Two")])) == ["indexed"]
    assert written(setting, [Task(kept, "source", moves_on=True)]) == []
    assert encoder.texts == ["One"]
    assert index.get("a").embedding == pytest.approx(vector_of("One"))
    assert index.get("a").version == 3


def test_a_document_that_the_index_refuses_is_a_dead_letter(setting):
    wrong = replace(company("a"), embedding=vector_of("x")[:2])
    (letter,) = written(setting, [Task(wrong, "there"), Task(company("b"), "here")])
    assert (letter.stage, letter.source, letter.record["id"]) == ("index", "there", "a")
    assert letter.reason.startswith("embedding: ")
    assert list(setting.index().known("ab")) == ["b"]


def test_batches_are_encoded_while_earlier_ones_wait_to_be_written(setting, monkeypatch):
    """Three of them are under way at once: each waits for the others."""
    together = threading.Barrier(3, timeout=20)
    real = encoding.encode

    def meet(client, tasks):
        together.wait()
        return real(client, tasks)

    monkeypatch.setattr(encoding, "encode", meet)
    step = Encode(setting, 3)
    step.setup()
    step.start_bundle()
    batches = [[Task(company(str(i), 1, None), "s", f"text {i}")] for i in range(3)]
    given = [value for batch in batches for value in values(step.process(batch, None, 0))]
    given += values(step.finish_bundle())
    step.teardown()
    assert [[task.document.id for task in batch] for batch in given] == [["0"], ["1"], ["2"]]  # in their order
    assert given[1][0].document.embedding == pytest.approx(vector_of("text 1"))


def test_no_more_batches_than_allowed_wait(setting):
    step = Encode(setting, 2)
    step.setup()
    step.start_bundle()
    most = 0
    for number in range(20):
        list(step.process([Task(company(str(number), 1, None), "s", f"text {number}")], None, 0))
        most = max(most, step.pending)
    list(step.finish_bundle())
    step.teardown()
    assert most <= 2


def test_refused_texts_are_apart_from_their_batch(setting):
    client = setting.client()
    tasks = [
        Task(company("a", 1, None), "s", "fine"),
        Task(company("b", 1, None), "s", POISON),
        Task(company("c"), "s"),
    ]
    done = encode(lambda: client, tasks)
    client.close()
    assert [task.document.id for task in done.good] == ["a", "c"]
    assert (list(done.refused), done.encoded) == (["b"], 1)


def test_a_batch_ends_by_number_or_by_bytes(monkeypatch):
    from pipelines.records import Company

    monkeypatch.setattr("pipelines.transforms.batch.BATCH_BYTES", 100)
    batch = Batch(3)
    batch.start_bundle()
    given = [Company(company(str(i), description="d" * size), "s") for i, size in enumerate((1, 1, 1, 90, 20, 1))]
    full = [len(one) for each in given for one in batch.process(each)]
    assert full == [3, 2]
    assert [len(one) for one in values(batch.finish_bundle())] == [1]
