"""The queue before the workers. The model is a stand-in that can be held, so that what waits meanwhile is known."""

import threading
import weakref
from concurrent.futures import Future
from types import SimpleNamespace

import grpc
import numpy as np
import pytest

from serving.server.api.status import Failure
from serving.server.compute import batching
from serving.server.compute.batching import Batcher
from serving.server.config.files import Batching
from serving.server.metrics import Metrics
from serving.server.models.loaded import LoadedModel

LONG, SHORT = 512, 8  # tokens: 2 and 128 texts make a full run of 1,024
SOON = 20  # seconds that nothing here comes near
PLUG = -1


class HeldModel:
    """Gives a text of marker m the vector [m], once it is let go; `runs` are the markers of each run so far."""

    contract = SimpleNamespace(max_tokens=LONG, dimension=1)
    pad_id = 0
    padded = LoadedModel.padded

    def __init__(self, held: bool = False):
        self.runs: list[list[int]] = []
        self.rows: list[int] = []
        self.entered, self.released = threading.Event(), threading.Event()
        self.fails_on: int | None = None
        if not held:
            self.released.set()

    def vectors(self, token_ids: np.ndarray) -> np.ndarray:
        markers = list(dict.fromkeys(token_ids[:, 0].tolist()))  # rows beyond the texts repeat the first
        self.runs.append(markers)
        self.rows.append(len(token_ids))
        self.entered.set()
        assert self.released.wait(SOON)
        if self.fails_on in markers:
            raise ValueError(f"no vector for {self.fails_on}\nand a long story")
        return token_ids[:, :1].astype(np.float32)

    @property
    def order(self) -> list[int]:
        return [marker for run in self.runs for marker in run if marker != PLUG]


def texts(*markers: int, length: int = LONG) -> list[np.ndarray]:
    return [np.full(length, marker, np.int32) for marker in markers]


@pytest.fixture
def open_batcher():
    """Batchers with one worker, so that runs have an order, closed after the test."""
    opened = []

    def make(**options) -> Batcher:
        opened.append(Batcher(Batching(threads=1, **options), Metrics()))
        return opened[-1]

    yield make
    for batcher in opened:
        batcher.close()


@pytest.fixture
def held():
    """Let go at the end even where a test fails, or its batcher could not be closed."""
    model = HeldModel(held=True)
    yield model
    model.released.set()


@pytest.fixture
def clock(monkeypatch):
    """Seconds as the batcher reads them."""
    now = SimpleNamespace(seconds=0.0)
    monkeypatch.setattr(batching, "time", SimpleNamespace(monotonic=lambda: now.seconds))
    return now


def plug(batcher: Batcher, model: HeldModel) -> Future:
    """The worker is busy from now on, and whatever comes has to wait."""
    future = batcher.submit(model, "pause", texts(PLUG))
    assert model.entered.wait(SOON)
    return future


def submit(batcher: Batcher, model: HeldModel, *markers: int, length: int = LONG) -> Future:
    return batcher.submit(model, "pause", texts(*markers, length=length))


def found(future: Future) -> list[int]:
    return future.result(SOON)[:, 0].tolist()


def code(future: Future) -> grpc.StatusCode:
    failure = future.exception(SOON)
    assert isinstance(failure, Failure)
    return failure.code


# order


def test_every_text_gets_its_own_vector_whatever_it_shares_a_run_with(open_batcher, held):
    batcher = open_batcher()
    plug(batcher, held)
    first = batcher.submit(held, "pause", [*texts(1, 2, 3), *texts(4, 5, length=SHORT)])
    second = batcher.submit(held, "pause", [*texts(6, length=SHORT), *texts(7)])
    held.released.set()
    assert found(first) == [1, 2, 3, 4, 5] and found(second) == [6, 7]
    assert sorted(map(sorted, held.runs)) == [[PLUG], [1, 2], [3, 7], [4, 5, 6]]  # they did share


def test_no_texts_have_no_vectors_and_need_no_run(open_batcher):
    model = HeldModel()
    assert open_batcher().submit(model, "pause", []).result(0).shape == (0, 1)
    assert model.runs == []


@pytest.mark.parametrize("length", [LONG, SHORT])
def test_a_single_text_does_not_wait_behind_all_of_a_bulk_request(open_batcher, held, clock, length):
    batcher = open_batcher()
    plug(batcher, held)
    bulk = submit(batcher, held, *range(300))
    clock.seconds = 1.0
    single = submit(batcher, held, 1000, length=length)
    held.released.set()
    assert found(single) == [1000] and len(found(bulk)) == 300
    # A text falls due every 0.02 s, so that 51 of the bulk were due at 1.0 s; one more may share the last one's run.
    assert held.order.index(1000) in (51, 52)


def test_single_texts_do_not_starve_a_bulk_request(open_batcher, held, clock):
    batcher = open_batcher()
    plug(batcher, held)
    bulk = submit(batcher, held, *range(10))
    singles = []
    for number in range(100):
        clock.seconds = number * 0.01
        singles.append(submit(batcher, held, 1000 + number))
    held.released.set()
    assert len(found(bulk)) == 10 and [found(single) for single in singles] == [[1000 + n] for n in range(100)]
    # The tenth text falls due at 0.18 s: before it come the 19 singles that came by then, the last of them at the
    # same moment but later in the queue.
    assert held.order.index(9) == 9 + 18


def test_texts_of_one_length_run_together_and_no_run_is_larger_than_its_tokens(open_batcher, held):
    batcher = open_batcher()
    plug(batcher, held)
    futures = [submit(batcher, held, number, length=LONG if number % 2 else 300) for number in range(1, 9)]
    held.released.set()
    assert [found(future) for future in futures] == [[number] for number in range(1, 9)]
    # 300 tokens are padded to 384, of which 2 fit as well
    assert held.runs[1:] == [[1, 3], [2, 4], [5, 7], [6, 8]] and held.rows[1:] == [2, 2, 2, 2]


# bounds


def test_a_full_queue_refuses_with_resource_exhausted_and_takes_again_when_it_has_room(open_batcher, held):
    batcher = open_batcher(max_runs_queued=2)
    plug(batcher, held)
    waiting = submit(batcher, held, 1, 2, 3)
    with pytest.raises(Failure, match="the queue is full: 3 texts") as refused:
        submit(batcher, held, 4, 5)
    assert refused.value.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    last = submit(batcher, held, 6)  # 4 x 512 tokens are two runs: it fits
    held.released.set()
    assert found(waiting) == [1, 2, 3] and found(last) == [6]
    assert found(submit(batcher, held, 7, 8, 9, 10)) == [7, 8, 9, 10]
    assert 4 not in held.order and 5 not in held.order


def test_a_request_larger_than_the_queue_is_taken_when_nothing_else_waits(open_batcher, held):
    batcher = open_batcher(max_runs_queued=1)
    plug(batcher, held)
    large = submit(batcher, held, *range(40))
    with pytest.raises(Failure):
        submit(batcher, held, 100)
    held.released.set()
    assert found(large) == list(range(40))


def test_the_texts_of_a_cancelled_request_are_not_run(open_batcher, held):
    batcher = open_batcher()
    plug(batcher, held)
    given_up, kept = submit(batcher, held, 1, 2, 3), submit(batcher, held, 4)
    assert given_up.cancel()
    held.released.set()
    assert found(kept) == [4]
    assert held.order == [4]


def test_a_request_cancelled_halfway_ends_there_and_the_worker_goes_on(open_batcher, held):
    batcher = open_batcher()
    request = submit(batcher, held, 1, 2, 3, 4, 5)
    assert held.entered.wait(SOON)
    assert request.cancel()
    held.released.set()
    assert found(submit(batcher, held, 6)) == [6]
    assert held.order == [1, 2, 6]


# failures


def test_a_run_that_fails_fails_its_requests_with_internal_and_no_others(open_batcher, held):
    held.fails_on = 2
    batcher = open_batcher()
    plug(batcher, held)
    futures = [submit(batcher, held, *markers) for markers in ([1], [2, 5, 6], [3], [4])]
    held.released.set()
    assert [code(future) for future in futures[:2]] == [grpc.StatusCode.INTERNAL] * 2
    assert str(futures[1].exception()) == "encoding failed: ValueError: no vector for 2"
    assert [found(future) for future in futures[2:]] == [[3], [4]]
    assert held.runs[1] == [1, 2]  # the one that failed
    assert 6 not in held.order, "the rest of a request that has failed already was run"


def test_a_worker_survives_what_the_model_raises(open_batcher):
    model = HeldModel()
    model.fails_on = 1
    batcher = open_batcher()
    for _ in range(3):
        assert code(submit(batcher, model, 1)) is grpc.StatusCode.INTERNAL
    assert found(submit(batcher, model, 2)) == [2]


# who shares a run


def test_texts_of_two_versions_never_share_a_run(open_batcher, held):
    batcher, other = open_batcher(), HeldModel()
    plug(batcher, held)
    futures = [
        submit(batcher, model, number, length=SHORT) for number in range(1, 9) for model in (held, other)
    ]  # 16 texts, where 128 fit
    held.released.set()
    assert [found(future) for future in futures] == [[number] for number in range(1, 9) for _ in range(2)]
    assert sorted(held.order) == sorted(other.order) == list(range(1, 9))
    assert len(held.runs) == 1 + 2 and len(other.runs) == 2  # 4 texts each: whoever is alone still shares


def test_without_batching_no_run_has_texts_of_two_requests(held):
    batcher = Batcher(None, Metrics())  # a worker a core
    plug(batcher, held)
    futures = [submit(batcher, held, 10 * number, 10 * number + 1, length=SHORT) for number in range(1, 6)]
    held.released.set()
    batcher.close()
    assert [found(future) for future in futures] == [[10 * number, 10 * number + 1] for number in range(1, 6)]
    assert all(len({marker // 10 for marker in run}) == 1 for run in held.runs)


# waiting for a run to fill


def test_a_run_waits_until_it_is_full(open_batcher):
    batcher, model = open_batcher(wait_seconds=2 * SOON), HeldModel()
    first = submit(batcher, model, 1)
    with pytest.raises(TimeoutError):
        first.result(0.1)
    second = submit(batcher, model, 2)
    assert found(first) == [1] and found(second) == [2]
    assert model.runs == [[1, 2]]


def test_a_run_that_does_not_fill_starts_when_it_has_waited_long_enough(open_batcher):
    batcher, model = open_batcher(wait_seconds=0.05), HeldModel()
    assert found(submit(batcher, model, 1, length=SHORT)) == [1]


def test_a_full_run_is_not_held_up_by_one_that_waits_to_fill(open_batcher):
    batcher, model = open_batcher(wait_seconds=2 * SOON), HeldModel()
    waiting = submit(batcher, model, 1, length=SHORT)
    assert found(submit(batcher, model, 2, 3)) == [2, 3]
    assert not waiting.done()


def test_the_last_texts_of_a_bulk_request_wait_no_longer_than_a_single_one_would(open_batcher):
    batcher, model = open_batcher(wait_seconds=0.01), HeldModel()
    bulk = submit(batcher, model, *range(1, 5002))
    assert bulk.result(SOON).shape == (5001, 1)  # the 5,001st falls due after 100 s


# the end


@pytest.mark.parametrize("wait", [0.0, 2 * SOON])
def test_close_finishes_what_waits(held, wait):
    batcher = Batcher(Batching(threads=2, wait_seconds=wait), Metrics())
    futures = [submit(batcher, held, number, 100 + number, 200 + number) for number in range(1, 6)]
    assert held.entered.wait(SOON)
    closing = threading.Thread(target=batcher.close)
    closing.start()
    held.released.set()
    closing.join(SOON)
    assert not closing.is_alive()
    assert [future.done() for future in futures] == [True] * 5
    assert [found(future) for future in futures] == [[number, 100 + number, 200 + number] for number in range(1, 6)]


def test_an_idle_worker_does_not_keep_a_version_in_memory(open_batcher):
    batcher, model, gone = open_batcher(), HeldModel(), threading.Event()
    weakref.finalize(model, gone.set)
    assert found(submit(batcher, model, 1)) == [1]
    assert not gone.is_set()
    del model
    assert gone.wait(SOON)
