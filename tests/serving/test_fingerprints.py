"""A model is asked for by its fingerprint: the version that has it is found, and no other answers in its place."""

import pickle
import threading
from contextlib import ExitStack

import numpy as np
import pytest
from companies import DIMENSION, MODEL, OTHER_MODEL
from encoder import POISON, vector_of

from model.contract import INDUSTRY_FIRST, Contract
from serving.client import EmbeddingClient, TextsRefused
from serving.endpoint.channel import ModelNotServed, ServingUnavailable

THIRD_MODEL = "abcdefabcdefabcd"
WIDE = 6


@pytest.fixture
def encoder(started):
    """The model of the index as version 1, another with other recipe and width as version 2."""
    encoder = started()
    encoder.publish(OTHER_MODEL, "{description}", WIDE)
    return encoder


@pytest.fixture
def connect():
    with ExitStack() as stack:
        yield lambda *encoders, **options: stack.enter_context(
            EmbeddingClient([one.address for one in encoders], **{"deadline": 5.0, **options})
        )


def expected(texts, dimension):
    return np.stack([vector_of(text, dimension) for text in texts])


def test_each_model_is_served_by_its_fingerprint_newest_or_not(encoder, connect):
    client, texts = connect(encoder), ["bank", "shop"]
    for model, dimension in ((MODEL, DIMENSION), (OTHER_MODEL, WIDE), (MODEL, DIMENSION)):
        vectors, made = client.embed(texts, model)
        assert made == [model] * 2
        np.testing.assert_allclose(vectors, expected(texts, dimension), rtol=1e-6)
    assert client.embed(texts)[1] == [OTHER_MODEL] * 2  # the newest, where none is named


def test_a_contract_is_that_of_the_model_asked_for(encoder, connect):
    client = connect(encoder)
    assert client.contract(MODEL) == Contract(MODEL, DIMENSION, 128, INDUSTRY_FIRST)
    assert client.contract(OTHER_MODEL).text_recipe == "{description}"
    assert client.contract().fingerprint == OTHER_MODEL


def test_what_can_be_asked_for_is_told_newest_first(encoder, connect):
    client = connect(encoder)
    assert list(client.served().items()) == [(OTHER_MODEL, 2), (MODEL, 1)]
    encoder.publish(THIRD_MODEL)
    assert list(client.served().items()) == [(THIRD_MODEL, 3), (OTHER_MODEL, 2)]


def test_of_two_versions_with_one_fingerprint_the_higher_is_asked(encoder, connect):
    encoder.publish(MODEL, keep=3)
    assert connect(encoder).served() == {MODEL: 3, OTHER_MODEL: 2}


def test_versions_are_looked_up_once_however_many_requests_follow(encoder, connect):
    client = connect(encoder)
    for number in range(20):
        client.embed([f"text {number}"], MODEL)
    assert encoder.statuses == 1


def test_threads_that_find_a_model_unknown_at_once_ask_once(encoder, connect):
    client = connect(encoder)
    threads = [threading.Thread(target=client.embed, args=([f"text {n}"], MODEL)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert encoder.statuses == 1 and len(encoder.texts) == 8


def test_a_model_that_is_not_served_is_refused_in_one_line_that_says_what_is(encoder, connect):
    client = connect(encoder)
    for ask in (lambda: client.embed(["bank"], THIRD_MODEL), lambda: client.contract(THIRD_MODEL)):
        with pytest.raises(ModelNotServed) as refused:
            ask()
        said = str(refused.value)
        assert THIRD_MODEL in said and f"{MODEL} as version 1" in said and f"{OTHER_MODEL} as version 2" in said
        assert "pipelines.reindex" in said and "--keep_versions" in said and "\n" not in said
    assert encoder.texts == []  # no other model encoded in its place


def test_a_version_that_went_away_is_looked_for_again_once(encoder, connect):
    client = connect(encoder)
    client.embed(["before"], MODEL)
    encoder.versions[3] = encoder.versions.pop(1)  # published again under the next number
    assert client.embed(["after"], MODEL)[1] == [MODEL]
    assert encoder.statuses == 2
    encoder.withdraw(3)
    with pytest.raises(ModelNotServed, match=f"it has {OTHER_MODEL} as version 2;"):
        client.embed(["gone"], MODEL)
    assert encoder.statuses == 3


def test_a_number_that_means_another_model_by_now_never_answers_for_the_first(encoder, connect):
    client = connect(encoder)
    client.embed(["before"], MODEL)
    encoder.versions[1] = Contract(THIRD_MODEL, DIMENSION, 128, "{description}")  # a server set up anew, of like width
    with pytest.raises(ModelNotServed, match=THIRD_MODEL):
        client.embed(["after"], MODEL)
    assert client.embed(["after"], THIRD_MODEL)[1] == [THIRD_MODEL]


def test_refused_texts_stand_alone_under_a_named_model_too(encoder, connect):
    with pytest.raises(TextsRefused) as refused:
        connect(encoder).embed(["bank", POISON, "shop"], MODEL)
    assert [one.position for one in refused.value.refusals] == [1]
    assert refused.value.fingerprints == [MODEL, "", MODEL]


def test_an_address_that_has_not_the_model_is_passed_over_whatever_its_numbers(started, connect):
    """Version 1 is another model behind either address."""
    first, second = started(OTHER_MODEL, "{description}", WIDE), started(MODEL)
    client = connect(first, second)
    for text in ("one", "two", "three"):
        assert client.embed([text], MODEL)[1] == [MODEL]
        assert client.embed([text], OTHER_MODEL)[1] == [OTHER_MODEL]
    assert (first.texts, second.texts) == (["one", "two", "three"],) * 2
    assert (first.statuses, second.statuses) == (1, 1)
    assert client.served() == {MODEL: 1, OTHER_MODEL: 1}


def test_where_one_address_falls_away_the_next_is_asked_by_its_own_number(started, connect):
    first, second = started(MODEL), started(OTHER_MODEL)
    second.publish(MODEL)
    client = connect(first, second)
    assert client.embed(["one"], MODEL)[1] == [MODEL] and first.texts == ["one"]
    first.stop()
    assert client.embed(["two"], MODEL)[1] == [MODEL] and second.texts == ["two"]
    assert client.served() == {MODEL: 2, OTHER_MODEL: 1}


def test_a_model_is_not_called_unserved_while_an_address_that_may_have_it_is_down(started, connect):
    first, second = started(MODEL), started(OTHER_MODEL)
    client = connect(first, second, deadline=1.0)
    client.embed(["one"], MODEL)
    first.stop()
    with pytest.raises(ServingUnavailable, match="gave no answer") as failed:
        client.embed(["two"], MODEL)
    assert not isinstance(failed.value, ModelNotServed)


def test_a_server_that_is_still_loading_is_waited_for(encoder, connect):
    versions, encoder.versions = encoder.versions, {}
    threading.Timer(0.5, lambda: setattr(encoder, "versions", versions)).start()
    assert connect(encoder).embed(["bank"], MODEL)[1] == [MODEL]


def test_the_error_survives_pickling():
    """Beam pickles exceptions."""
    error = pickle.loads(pickle.dumps(ModelNotServed("no such model")))
    assert isinstance(error, ServingUnavailable) and str(error) == "no such model"
