import numpy as np
import pytest

from model.training.cache import cached


@pytest.fixture
def counted():
    calls = []

    def encode():
        calls.append(1)
        return np.full((2, 3), len(calls), np.float32)

    return calls, encode


def test_the_same_texts_of_the_same_model_are_encoded_once(tmp_path, counted):
    calls, encode = counted
    first = cached(str(tmp_path), "f1", ["a", "b"], encode)
    assert (cached(str(tmp_path), "f1", ["a", "b"], encode) == first).all() and len(calls) == 1


@pytest.mark.parametrize(("fingerprint", "texts"), [("f2", ["a", "b"]), ("f1", ["ab", ""]), ("f1", ["b", "a"])])
def test_another_model_or_other_texts_are_encoded_anew(tmp_path, counted, fingerprint, texts):
    calls, encode = counted
    cached(str(tmp_path), "f1", ["a", "b"], encode)
    assert cached(str(tmp_path), fingerprint, texts, encode)[0, 0] == 2 and len(calls) == 2


def test_without_a_directory_nothing_is_kept(counted):
    calls, encode = counted
    cached(None, "f1", ["a"], encode)
    cached(None, "f1", ["a"], encode)
    assert len(calls) == 2
