"""A stream's items on a runner with one thread: who goes at once, who waits, and for how long."""

import threading
import time

import pytest
from waiting import wait_until

from pipelines.overlap import Polled


class Timer:
    def __init__(self):
        self.is_set = False

    def set(self, _):
        self.is_set = True


class Gate(Polled):
    """Lets a batch through when it is told to."""

    def setup(self):
        super().setup()
        if self._first is self:
            self.batches = []
            self.gate = threading.Semaphore(0)

    def work(self, element):
        self.batches.append(element)
        assert self.gate.acquire(timeout=20)
        return element

    def end(self, done):
        yield done


@pytest.fixture
def make():
    steps = []

    def made(in_flight=2, size=3, max_wait=60.0):
        steps.append(Gate(in_flight, size=size, max_wait=max_wait))
        steps[-1].setup()
        return steps[-1]

    yield made
    for step in steps:
        step.gate.release(100)
        step._pool.shutdown()


def give(step, *items):
    return [done for item in items for done in step.process((0, item), Timer())]


def look(step):
    timer = Timer()
    return list(step.look(timer)), timer.is_set


def test_a_lone_item_goes_at_once_and_later_ones_gather_meanwhile(make):
    step = make()
    assert give(step, "a", "b", "c") == []
    wait_until(lambda: step.batches == [["a"]])
    step.gate.release()
    wait_until(lambda: step.batches == [["a"], ["b", "c"]])  # though nobody looks
    assert look(step) == ([["a"]], True)


def test_a_full_batch_goes_beside_the_one_before(make):
    step = make(size=2)
    give(step, "a", "b", "c")
    wait_until(lambda: step.batches == [["a"], ["b", "c"]])


def test_nobody_waits_longer_than_allowed_where_there_is_room(make):
    step = make(max_wait=0.1)
    give(step, "a", "b")
    time.sleep(0.1)
    look(step)
    wait_until(lambda: step.batches == [["a"], ["b"]])
    give(step, "c")
    time.sleep(0.1)
    look(step)
    assert step.batches == [["a"], ["b"]]  # two are under way, and no third may be


def test_more_than_may_wait_hold_the_reader_up(make):
    step = make(in_flight=1, size=2)
    give(step, "a", "b")
    threading.Timer(0.2, step.gate.release).start()
    assert give(step, "c") == [["a"]]  # waited for, so that no more than a batch gathers
    wait_until(lambda: step.batches == [["a"], ["b", "c"]])


def test_the_timer_goes_on_until_nothing_is_left(make):
    step = make()
    give(step, "a")
    assert look(step) == ([], True)
    step.gate.release()
    wait_until(lambda: step._under_way[0].done())
    assert look(step) == ([["a"]], False)


def test_an_instance_of_a_later_bundle_works_on_with_the_first(make):
    step = make()
    give(step, "a")
    later = Gate(2, size=3, max_wait=60.0)
    later._name = step._name  # as it comes out of a pickle
    later.setup()
    step.gate.release()
    wait_until(lambda: step._under_way[0].done())
    assert look(later) == ([["a"]], False)
