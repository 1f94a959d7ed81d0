"""A stream's items on a runner with one thread: who goes at once, who waits, and what becomes of what fails."""

import math
import threading
import time
from contextlib import contextmanager

import pytest
from waiting import wait_until

from common.errors import InputError
from index.errors import WrongModel
from pipelines.concurrency import direct_stream
from pipelines.concurrency.direct_stream import TRIES, PolledDoFn, StreamFailed, tries
from serving.endpoint.channel import ServingUnavailable


class Timer:
    def __init__(self):
        self.is_set = False

    def set(self, _):
        self.is_set = True


class Gate(PolledDoFn):
    """Lets a batch through when it is told to, and fails with what it is given to fail with."""

    end_faults = ()

    def open(self):
        self.batches, self.faults, self.end_faults = [], [], []
        self.gate = threading.Semaphore(0)

    def work(self, element):
        self.batches.append(element)
        assert self.gate.acquire(timeout=20)
        if self.faults:
            raise self.faults.pop(0)
        return element

    def end(self, done):
        if self.end_faults:
            raise self.end_faults.pop(0)
        yield done

    def refuse(self, items, reason):
        return [(item, reason) for item in items]


@pytest.fixture
def make(monkeypatch):
    monkeypatch.setattr(direct_stream, "held_by_step", {})
    monkeypatch.setattr(direct_stream, "reading", direct_stream.Reading())  # another test's job may have stopped it
    monkeypatch.setattr("pipelines.concurrency.work_queue.LONGEST_PAUSE", 0.05)
    steps = []

    def made(in_flight=2, size=3, max_wait=60.0):
        steps.append(Gate(in_flight, size=size, max_wait=max_wait))
        steps[-1].setup()
        return steps[-1]

    yield made
    for step in steps:
        step.gate.release(100)
        step.queue.close()


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
    wait_until(lambda: step.queue.states == ["done"])
    assert look(step) == ([["a"]], False)


def test_an_instance_of_a_later_bundle_works_on_with_the_first(make):
    step = make()
    give(step, "a")
    later = Gate(2, size=3, max_wait=60.0)
    later.name = step.name  # as it comes out of a pickle
    later.setup()
    step.gate.release()
    wait_until(lambda: step.queue.states == ["done"])
    assert look(later) == ([["a"]], False)


def looked(step, until):
    """All that comes out while somebody looks as the timer says, until it is set no more or that is true."""
    came, again = [], True
    while again and not until(came):
        outputs, again = look(step)
        came += outputs
        time.sleep(0.01)
    return came


def test_a_batch_that_a_sick_service_fails_is_tried_again_until_it_is_well(make):
    step = make()
    step.gate.release(100)
    step.faults += [ServingUnavailable("away")] * 3
    give(step, "a")
    assert looked(step, lambda came: False) == [["a"]]
    assert step.batches == [["a"]] * 4


def test_a_reader_held_up_by_a_sick_service_goes_on_when_it_is_well(make):
    step = make(in_flight=1, size=2)
    step.gate.release(100)
    step.faults += [OSError("no space left")] * 5
    came = give(step, *"abcdefg")
    came += looked(step, lambda came: False)
    assert sorted("".join(map("".join, came))) == list("abcdefg")


def test_what_fails_for_good_goes_out_before_the_job_fails(make):
    step = make(size=2)
    step.faults += [InputError("no such file of certificates")]
    give(step, "a", "b")
    step.gate.release()
    came = looked(step, bool)
    assert give(step, "c") == [[("c", "no such file of certificates")]]
    assert came == [[("a", "no such file of certificates")], [("b", "no such file of certificates")]]
    with pytest.raises(StreamFailed, match=r"no such file of certificates; 3 records .*--replay"):
        looked(step, lambda came: False)


def test_the_job_fails_again_when_the_runner_tries_that_bundle_again(make):
    step = make()
    step.faults += [InputError("broken")]
    step.gate.release()
    give(step, "a")
    for _ in range(4):
        with pytest.raises(StreamFailed):
            looked(step, lambda came: False)


def test_what_cannot_be_handed_on_at_once_is_handed_on_later(make):
    step = make()
    step.end_faults += [KeyError("by chance")] * 2
    step.gate.release()
    give(step, "a")
    assert looked(step, lambda came: False) == [["a"]]


def test_nothing_is_left_where_the_runner_looks_only_as_its_timer_says(make):
    """Give, then nothing but the timer: over and over, with the work ending at any moment in between."""
    step = make(size=1000)
    step.gate.release(10_000)
    came = []
    for number in range(300):
        came += give(step, number)
        came += looked(step, lambda came: False)
    assert sorted(item for batch in came for item in batch) == list(range(300))


def test_a_runner_that_calls_nothing_for_a_while_delays_what_comes_out_and_no_work(make):
    step = make()
    step.gate.release(100)
    give(step, *"abc")
    wait_until(lambda: sorted("".join(map("".join, step.batches))) == list("abc"))
    assert sorted("".join(map("".join, looked(step, lambda came: False)))) == list("abc")


def test_drained_in_time_nothing_is_buried(make):
    step = make()
    give(step, "a")
    threading.Timer(0.2, step.gate.release).start()
    came = []
    with runner(step, came):
        direct_stream.drain(20.0)
    assert came == [["a"]]


def test_what_is_not_drained_in_time_is_buried_with_the_last_failure(make):
    step = make()
    step.faults += [ServingUnavailable("endpoint away")] * 1000
    step.gate.release(1000)
    give(step, "a")
    came = []
    with runner(step, came):
        direct_stream.drain(0.5)
    ((buried,),) = came
    assert buried[0] == "a"
    assert buried[1].endswith("endpoint away")


@contextmanager
def runner(step, came):
    """A thread that looks at the step, as the direct runner's."""
    ended = threading.Event()

    def run():
        while not ended.wait(0.02):
            try:
                came.extend(look(step)[0])
            except StreamFailed:
                return

    thread = threading.Thread(target=run)
    thread.start()
    yield
    ended.set()
    thread.join()


class Status(Exception):
    """As Elasticsearch's client has it."""

    def __init__(self, status_code):
        super().__init__(status_code)
        self.status_code = status_code


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ServingUnavailable("x"), math.inf),
        (WrongModel("x", "y", "z"), math.inf),
        (OSError("x"), math.inf),
        (RuntimeError("lance error: No space left on device"), math.inf),
        (Status(404), math.inf),
        (Status(503), math.inf),
        (Status(400), TRIES),
        (KeyError("x"), TRIES),
        (InputError("x"), 1),
    ],
    ids=repr,
)
def test_only_what_somebody_mends_elsewhere_is_waited_for(error, expected):
    assert tries(error) == expected
