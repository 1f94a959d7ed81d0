"""A queue with threads of its own: every item that was given is ended once, whatever fails on the way and when."""

import itertools
import math
import random
import threading
import time
from collections import Counter

import pytest
from waiting import wait_until

from pipelines.concurrency.work_queue import WorkQueue


class Sick(Exception):
    """Passes."""


class Broken(Exception):
    """Does not."""


def tries(error):
    return math.inf if isinstance(error, Sick) else 1


@pytest.fixture
def make():
    queues = []

    def made(work, workers=2, size=3, max_wait=60.0):
        queues.append(WorkQueue(work, workers=workers, size=size, max_wait=max_wait, tries=tries, pause=0.01))
        return queues[-1]

    yield made
    for queue in queues:
        queue.close()


def ended(queue):
    """Items of what can be taken now; those lost have their reason beside them."""
    taken = queue.take()
    for batch in taken:
        queue.ended(batch)
    return [(item, str(batch.lost)) if batch.lost else item for batch in taken for item in batch.items]


def all_ended(queue):
    came = []
    wait_until(lambda: came.extend(ended(queue)) or not queue.held, seconds=20)
    return sorted(came)


def failing(times, error=Sick):
    """Work that fails so often before it succeeds."""
    left = [times]

    def work(items):
        if left[0]:
            left[0] -= 1
            raise error("away")
        return items

    return work


@pytest.mark.parametrize("times", [1, 3, 6])
def test_a_batch_that_fails_is_kept_and_tried_again(make, times):
    queue = make(failing(times))
    queue.give("a")
    assert all_ended(queue) == ["a"]


def test_pauses_between_tries_grow_and_time_alone_ends_them(make):
    moments = []

    def work(items):
        moments.append(time.monotonic())
        if len(moments) < 5:
            raise Sick("away")

    queue = make(work)
    queue.give("a")
    wait_until(lambda: queue.states == ["done"], seconds=20)  # nobody gives, takes or looks meanwhile
    pauses = [after - before for before, after in itertools.pairwise(moments)]
    assert all(pause >= 0.005 * 2**number for number, pause in enumerate(pauses))  # half of it is by chance


def test_a_long_sickness_bounds_the_pause(make, monkeypatch):
    monkeypatch.setattr("pipelines.concurrency.work_queue.LONGEST_PAUSE", 0.0)
    queue = make(failing(3000))
    queue.give("a")
    assert all_ended(queue) == ["a"]


def test_a_failed_batch_keeps_its_place_and_the_rest_goes_on(make):
    well = threading.Event()

    def work(items):
        if "bad" in items and not well.is_set():
            raise Sick("this one only")
        return items

    queue = make(work)
    queue.give("bad")
    wait_until(lambda: queue.states == ["failed"], seconds=20)
    queue.give("a")
    queue.give("b")
    came = []
    wait_until(lambda: came.extend(ended(queue)) or len(came) == 2, seconds=20)
    assert sorted(came) == ["a", "b"]
    assert queue.held == 1
    well.set()
    assert all_ended(queue) == ["bad"]


def test_while_all_fail_no_more_is_held_than_places_and_one_batch(make):
    sick = threading.Event()

    def work(items):
        if not sick.is_set():
            raise Sick("away")
        return items

    queue = make(work, workers=2, size=3)
    given = 0
    deadline = time.monotonic() + 1
    while time.monotonic() < deadline:
        if not queue.full:
            queue.give(given)
            given += 1
    assert given <= 3 * 2 + 3
    sick.set()
    assert all_ended(queue) == list(range(given))


def test_what_waits_goes_by_itself_once_it_has_waited_long_enough(make):
    gate = threading.Semaphore(0)
    queue = make(lambda items: gate.acquire(timeout=20), max_wait=0.1)
    queue.give("a")
    queue.give("b")  # nobody looks from here on
    wait_until(lambda: queue.states == ["under way", "under way"], seconds=20)
    gate.release(2)
    assert all_ended(queue) == ["a", "b"]


def test_what_waits_goes_by_itself_once_nothing_is_under_way(make):
    gate = threading.Semaphore(0)
    queue = make(lambda items: gate.acquire(timeout=20))
    queue.give("a")
    queue.give("b")
    gate.release(2)
    wait_until(lambda: queue.states == ["done", "done"], seconds=20)


def test_a_failure_that_will_not_pass_gives_up_all_that_nobody_works_on(make):
    gate = threading.Semaphore(0)

    def work(items):
        gate.acquire(timeout=20)
        if "bad" in items:
            raise Broken("no such model")
        return items

    queue = make(work, workers=2, size=2)
    for item in ("a", "bad", "c", "d"):  # "a" and "bad c" are under way, "d" waits
        queue.give(item)
    wait_until(lambda: queue.states == ["under way", "under way"], seconds=20)
    gate.release(2)
    wait_until(lambda: queue.fault is not None and "under way" not in queue.states, seconds=20)
    queue.give("later")
    lost = "no such model"
    assert sorted(map(str, ended(queue))) == sorted(
        map(str, ["a", ("bad", lost), ("c", lost), ("d", lost), ("later", lost)])
    )
    assert queue.held == 0


def test_what_is_given_up_under_way_ends_once_though_its_work_ends_later(make):
    gate = threading.Semaphore(0)
    queue = make(lambda items: gate.acquire(timeout=20))
    queue.give("a")
    wait_until(lambda: queue.states == ["under way"], seconds=20)
    queue.give_up(Broken("interrupted"))
    assert ended(queue) == [("a", "interrupted")]
    gate.release()
    time.sleep(0.1)
    assert ended(queue) == []
    assert queue.held == 0


def test_what_could_not_be_handed_on_can_be_taken_again(make):
    queue = make(lambda items: items)
    queue.give("a")
    wait_until(lambda: queue.states == ["done"], seconds=20)
    (batch,) = queue.take()
    assert queue.take() == []  # it is one taker's alone
    queue.put_back(batch, Sick("full"))
    assert ended(queue) == ["a"]


def test_closed_with_work_under_way_it_holds_what_it_held(make):
    gate = threading.Semaphore(0)
    queue = make(lambda items: gate.acquire(timeout=20))
    queue.give("a")
    queue.give("b")
    wait_until(lambda: queue.states == ["under way"], seconds=20)
    queue.close()
    gate.release(2)
    wait_until(lambda: queue.states[:1] == ["done"], seconds=20)
    assert queue.held == 2


@pytest.mark.parametrize("seed", range(5))
def test_whatever_fails_and_however_slow_every_item_is_ended_once(make, seed):
    """Many threads give and take; a third of all work and of all endings fails, and each takes its time."""
    chance, guard = random.Random(seed), threading.Lock()

    def draw():
        with guard:
            return chance.random()

    def work(items):
        time.sleep(draw() / 100)
        if draw() < 1 / 3:
            raise Sick("by chance")
        return list(items)

    queue = make(work, workers=3, size=7, max_wait=0.005)
    items, ends, giving = 400, Counter(), threading.Event()

    def give(part):
        for number in range(part, items, 4):
            while queue.full:
                queue.wait(0.01)
            queue.give(number)
            if draw() < 0.02:
                time.sleep(0.05)

    def take():
        while not giving.is_set() or queue.held:
            for batch in queue.take():
                if draw() < 1 / 3:
                    queue.put_back(batch, Sick("by chance"))
                    continue
                assert batch.result == batch.items
                with guard:
                    ends.update(batch.items)
                queue.ended(batch)
            time.sleep(draw() / 100)

    givers = [threading.Thread(target=give, args=(part,)) for part in range(4)]
    takers = [threading.Thread(target=take) for _ in range(2)]
    for thread in givers + takers:
        thread.start()
    for thread in givers:
        thread.join(60)
    giving.set()
    for thread in takers:
        thread.join(60)
    assert ends == Counter(range(items))
