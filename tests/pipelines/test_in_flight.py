"""Steps that work on several batches of a bundle at a time: a bundle fails as a whole, and leaves nothing behind."""

import threading
import time

import pytest

from pipelines.concurrency.in_flight import ConcurrentDoFn


class Failing(ConcurrentDoFn):
    """Work that ends when it is told to; "bad" fails."""

    def setup(self):
        super().setup()
        self.gates = {}
        self.began, self.ended = [], []

    def work(self, element):
        self.began.append(element)
        gate = self.gates.get(element)
        assert gate is None or gate.wait(20)
        if element == "bad":
            raise OSError("away")
        self.ended.append(element)
        return element

    def end(self, done):
        yield done


@pytest.fixture
def step():
    made = Failing(2)
    made.setup()
    made.start_bundle()
    yield made
    made.teardown()


def given(outputs):
    return [output.value for output in outputs]


def test_a_failure_in_the_middle_fails_the_bundle_once_nothing_of_it_is_under_way(step):
    step.gates["slow"] = threading.Event()
    assert given(step.process("a", None, 0)) in ([], ["a"])
    with pytest.raises(OSError, match="away"):
        threading.Timer(0.3, step.gates["slow"].set).start()
        for element in ("bad", "slow", "b", "c"):
            list(step.process(element, None, 0))
        list(step.finish_bundle())
    assert step.ended.count("slow") == step.began.count("slow")  # it did not begin, or it is over


def test_the_next_bundle_begins_with_nothing_of_the_failed_one(step):
    step.gates["slow"] = threading.Event()
    list(step.process("slow", None, 0))
    list(step.process("queued", None, 0))
    threading.Timer(0.3, step.gates["slow"].set).start()
    step.start_bundle()  # another step failed the bundle: nobody finished it here
    assert "slow" in step.ended
    assert step.pending == 0
    step.began.clear()
    outputs = given(step.process("next", None, 0)) + given(step.finish_bundle())
    time.sleep(0.1)
    assert (outputs, step.began) == (["next"], ["next"])


def test_given_again_the_bundle_comes_out_whole_and_in_its_order(step):
    with pytest.raises(OSError, match="away"):
        for element in ("a", "bad", "b"):
            list(step.process(element, None, 0))
        list(step.finish_bundle())
    step.start_bundle()
    outputs = [value for element in "abcde" for value in given(step.process(element, None, 0))]
    assert outputs + given(step.finish_bundle()) == list("abcde")


def test_nothing_comes_out_of_a_batch_whose_work_failed(step):
    """What is not in the index is not acknowledged: the failure reaches the runner before any output of it does."""
    came = []
    with pytest.raises(OSError, match="away"):
        for element in ("bad", "b", "c", "d"):
            came += given(step.process(element, None, 0))
        came += given(step.finish_bundle())
    assert came == []
