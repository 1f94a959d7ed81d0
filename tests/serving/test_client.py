import pickle
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import grpc
import numpy as np
import pytest
import tensorflow as tf
from certificates import write_certificates
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

from model.contract import Contract
from serving.client import BYTES_PER_REQUEST, EmbeddingClient, Refusal, TextsRefused, split
from serving.endpoint import channel
from serving.endpoint.channel import ServingUnavailable
from serving.endpoint.connection import TlsFiles

CONTRACT = Contract("feedfacefeedface", 3, 128, "{description}")
Code = grpc.StatusCode
LONG = 600  # bytes: over 128 tokens, so that 8192 // 128 = 64 of them make a request


def vector_of(text: bytes) -> np.ndarray:
    """A vector that only this text has, or nearly: its length, its first and its last byte."""
    return np.array([len(text), *(text[:1] or b"\0"), *(text[-1:] or b"\0")], np.float32)


def expected(texts) -> np.ndarray:
    return np.stack([vector_of(text.encode()) for text in texts])


def long_texts(requests):
    return [f"{number:05d}".ljust(LONG, "x") + str(number % 10) for number in range(64 * requests)]


class Servicer(prediction_service_pb2_grpc.PredictionServiceServicer):
    """Speaks TensorFlow Serving's own messages; `react` may fail or hold up a request before it is answered."""

    def __init__(self):
        self.contract = CONTRACT
        self.poison: set[bytes] = set()
        self.react = lambda texts, context: None
        self.sent: list[list[bytes]] = []  # the texts of each request
        self.contracts = self.active = self.most_active = 0
        self._lock = threading.Lock()

    def Predict(self, request, context):  # noqa: N802
        texts = list(request.inputs["text"].string_val)
        response = predict_pb2.PredictResponse()
        if request.model_spec.signature_name == "contract":
            self.contracts += 1
            response.outputs["contract"].CopyFrom(tf.make_tensor_proto([self.contract.to_json()] * len(texts)))
            return response
        with self._lock:
            self.sent.append(texts)
            self.active += 1
            self.most_active = max(self.most_active, self.active)
        try:
            self.react(texts, context)
        finally:
            with self._lock:
                self.active -= 1
        if self.poison & set(texts):
            context.abort(Code.INVALID_ARGUMENT, "indigestible")
        vectors = np.stack([np.resize(vector_of(text), self.contract.dimension) for text in texts])
        response.outputs["embedding"].CopyFrom(tf.make_tensor_proto(vectors))
        response.outputs["model"].CopyFrom(tf.make_tensor_proto([self.contract.fingerprint] * len(texts)))
        return response


class Server:
    def __init__(self, servicer, port=0, credentials=None, options=()):
        self._pool = ThreadPoolExecutor(16)
        self._server = grpc.server(self._pool, options=list(options))
        prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(servicer, self._server)
        where = f"127.0.0.1:{port}"
        self.port = (
            self._server.add_secure_port(where, credentials) if credentials else self._server.add_insecure_port(where)
        )
        self.address = f"127.0.0.1:{self.port}"
        self._server.start()

    def stop(self):
        self._server.stop(None).wait()
        self._pool.shutdown()


@pytest.fixture
def servicer():
    return Servicer()


@pytest.fixture
def start(servicer):
    servers = []

    def started(**options):
        servers.append(Server(servicer, **options))
        return servers[-1]

    yield started
    for server in servers:
        server.stop()


@pytest.fixture
def client(start):
    with EmbeddingClient([start().address], deadline=20) as made:
        yield made


# vectors


def test_each_text_gets_its_own_vector_whatever_the_order_it_is_sent_in(client, servicer):
    texts = [letter * size for letter in "abc" for size in (1, 5000, 40, 300)] + long_texts(3) + [""]
    vectors, fingerprints = client.embed(texts)
    assert len(servicer.sent) > 3
    assert vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors, expected(texts))
    assert fingerprints == [CONTRACT.fingerprint] * len(texts)


def test_no_texts_give_no_vectors_of_the_right_width(client, servicer):
    vectors, fingerprints = client.embed([])
    assert vectors.shape == (0, 3) and vectors.dtype == np.float32 and fingerprints == []
    assert servicer.sent == []


def test_vectors_may_be_written_to(client):
    for texts in (["a"], ["a", "b", "a"]):
        vectors, _ = client.embed(texts)
        vectors += 1
        np.testing.assert_array_equal(vectors, expected(texts) + 1)


def test_a_text_that_occurs_often_is_sent_once(client, servicer):
    texts = ["same"] * 50 + ["other", "same"]
    np.testing.assert_array_equal(client.embed(texts)[0], expected(texts))
    assert servicer.sent == [[b"other", b"same"]]


def test_halves_of_characters_are_mended_or_replaced(client, servicer):
    broken = ["\ud83d\ude80 whole", "lost \ud83d half", "\ude80"]
    vectors, _ = client.embed(broken)
    mended = ["🚀 whole", "lost \ufffd half", "\ufffd"]
    np.testing.assert_array_equal(vectors, expected(mended))
    assert sorted(servicer.sent[0]) == sorted(text.encode() for text in mended)


@pytest.mark.parametrize("wrong", [None, 3, b"bytes", ["nested"], float("nan")])
def test_what_is_no_text_is_named_with_its_position_before_anything_is_sent(client, servicer, wrong):
    with pytest.raises(TypeError, match=f"got {type(wrong).__name__} at position 1: "):
        client.embed(["fine", wrong])
    assert servicer.sent == []


def test_one_text_alone_is_no_list_of_its_letters(client):
    with pytest.raises(TypeError, match="a list of str, got one str: 'some text'"):
        client.embed("some text")


def test_texts_may_come_from_an_iterator_or_an_array(client):
    for texts in (iter(["a", "bc"]), np.array(["a", "bc"])):
        np.testing.assert_array_equal(client.embed(texts)[0], expected(["a", "bc"]))


def test_several_threads_may_share_a_client(client):
    runs = [[f"{run} " * 200 + str(number) for number in range(150)] for run in range(6)]
    with ThreadPoolExecutor(6) as pool:
        for texts, (vectors, _) in zip(runs, pool.map(client.embed, runs), strict=True):
            np.testing.assert_array_equal(vectors, expected(texts))


# requests


def test_requests_are_split_longest_first_within_tokens_texts_and_bytes():
    sizes = [40] * 600 + [1_000_000] * 5 + [4000] * 10
    parts = split(sizes, max_tokens=256)
    assert sorted(row for part in parts for row in part) == list(range(615))
    assert [sizes[row] for part in parts for row in part] == sorted(sizes, reverse=True)
    for part in parts:
        longest = min(max(sizes[row] for row in part) // 4 + 2, 256)
        assert len(part) * longest <= 8192
        assert len(part) <= 256 and sum(sizes[row] for row in part) <= BYTES_PER_REQUEST
    # 3 of 1 MB, 2 of 1 MB with 30 others of the most tokens (8192 / 256 = 32 rows), then 256 short ones a request
    assert [len(part) for part in parts] == [3, 32, 256, 256, 68]


def test_a_text_over_every_bound_has_a_request_of_its_own():
    assert split([10, 9_000_000, 10], max_tokens=20_000) == [[1], [0, 2]]
    assert split([], max_tokens=128) == []


def test_several_requests_are_in_flight_at_once_but_no_more_than_asked_for(start, servicer):
    together = threading.Barrier(3, timeout=10)  # fewer would never pass it
    servicer.react = lambda texts, context: together.wait()
    with EmbeddingClient([start().address], in_flight=3) as client:
        client.embed(long_texts(6))
    assert len(servicer.sent) == 6
    assert servicer.most_active == 3


def test_at_least_one_request_must_be_in_flight():
    with pytest.raises(ValueError, match="at least 1, got 0"):
        EmbeddingClient(["localhost:8500"], in_flight=0)


# the model behind the service


def test_the_contract_is_asked_for_once(client, servicer):
    assert client.contract() == CONTRACT
    client.embed(["a"])
    assert client.contract() == CONTRACT
    assert servicer.contracts == 1


def test_after_a_swap_width_and_fingerprint_are_those_of_the_vectors(client, servicer):
    client.contract()
    servicer.contract = replace(CONTRACT, fingerprint="0123456789abcdef", dimension=2)
    vectors, fingerprints = client.embed(["a", "bc"])
    np.testing.assert_array_equal(vectors, expected(["a", "bc"])[:, :2])
    assert fingerprints == ["0123456789abcdef"] * 2


def test_after_a_swap_the_contract_is_asked_for_again(client, servicer):
    client.embed(["a"])
    servicer.contract = replace(CONTRACT, fingerprint="0123456789abcdef", max_tokens=7)
    assert client.contract() == CONTRACT  # nothing has told of the swap yet
    client.embed(["a"])
    assert client.contract() == servicer.contract
    client.embed(["a"])
    assert servicer.contracts == 2


def swap_at_second_request(servicer, **changes):
    def react(texts, context):
        if len(servicer.sent) == 2:
            servicer.contract = replace(CONTRACT, **changes)

    servicer.react = react


def test_a_swap_during_a_call_shows_in_the_fingerprints(start, servicer):
    swap_at_second_request(servicer, fingerprint="0123456789abcdef")
    texts = long_texts(2)
    with EmbeddingClient([start().address], in_flight=1) as client:
        vectors, fingerprints = client.embed(texts)
    np.testing.assert_array_equal(vectors, expected(texts))
    assert fingerprints == [CONTRACT.fingerprint] * 64 + ["0123456789abcdef"] * 64


def test_a_swap_to_another_width_during_a_call_is_an_error(start, servicer):
    swap_at_second_request(servicer, fingerprint="0123456789abcdef", dimension=2)
    message = "2 numbers from model 0123456789abcdef and 3 numbers from model feedfacefeedface in one call"
    with EmbeddingClient([start().address], in_flight=1) as client:
        with pytest.raises(ServingUnavailable, match=message):
            client.embed(long_texts(2))
        assert client.embed(["a"])[0].shape == (1, 2)


@pytest.mark.parametrize("answer", ["", "[]", "{}", '{"fingerprint": "a"}'])
def test_a_model_without_a_contract_is_named(client, servicer, answer):
    servicer.contract = type("Broken", (), {"to_json": lambda self: answer})()
    with pytest.raises(ServingUnavailable, match=r"model 'pause' at 127.0.0.1:.* states no contract; serve one that"):
        client.embed(["a"])


# failures


@pytest.mark.parametrize("count", [1, 2000])
def test_a_refused_text_fails_alone_with_the_servers_reason(client, servicer, count):
    texts = [f"text {number}" for number in range(count - 1)]
    texts.insert(1234, "poison")
    where = texts.index("poison")
    servicer.poison = {b"poison"}
    with pytest.raises(TextsRefused) as caught:
        client.embed(texts)
    refused = caught.value
    assert refused.refusals == [Refusal(where, "poison", "INVALID_ARGUMENT: indigestible")]
    assert refused.fingerprints[where] == ""
    assert refused.fingerprints.count(CONTRACT.fingerprint) == count - 1
    assert refused.vectors.shape == (count, 3) and not refused.vectors[where].any()
    good = [row for row in range(count) if row != where]
    np.testing.assert_array_equal(refused.vectors[good], expected(texts)[good])
    assert str(refused) == (
        f"1 of {count} texts refused, the first at position {where} ('poison'): INVALID_ARGUMENT: indigestible"
    )


def test_every_occurrence_of_a_refused_text_is_named(client, servicer):
    servicer.poison = {b"bad", b"worse"}
    with pytest.raises(TextsRefused, match="4 of 5 texts") as caught:
        client.embed(["bad", "good", "bad", "worse", "bad"])
    assert [(each.position, each.text) for each in caught.value.refusals] == [
        (0, "bad"),
        (2, "bad"),
        (3, "worse"),
        (4, "bad"),
    ]
    np.testing.assert_array_equal(caught.value.vectors[1], vector_of(b"good"))


def test_a_refusal_survives_pickling_as_beam_needs(client, servicer):
    servicer.poison = {b"bad"}
    with pytest.raises(TextsRefused) as caught:
        client.embed(["fine", "bad"])
    copy = pickle.loads(pickle.dumps(caught.value))
    assert copy.refusals == caught.value.refusals and copy.fingerprints == [CONTRACT.fingerprint, ""]
    np.testing.assert_array_equal(copy.vectors, caught.value.vectors)
    assert str(copy) == str(caught.value)


def test_a_text_over_the_message_limit_is_refused_alone(client):
    with pytest.raises(TextsRefused) as caught:
        client.embed(["small", "x" * 5_000_000, "short"])
    refused = caught.value
    assert [refusal.position for refusal in refused.refusals] == [1]
    assert "larger than max" in refused.refusals[0].reason
    np.testing.assert_array_equal(refused.vectors[[0, 2]], expected(["small", "short"]))


def test_a_server_with_a_lower_message_limit_gets_smaller_requests(start, servicer):
    texts = [letter * 3000 for letter in "abcdef"]
    with EmbeddingClient([start(options=[("grpc.max_receive_message_length", 10_000)]).address]) as client:
        np.testing.assert_array_equal(client.embed(texts)[0], expected(texts))
    assert [len(sent) for sent in servicer.sent] == [3, 3]


def embed_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("embed")]


def test_the_first_part_that_fails_for_good_ends_the_others_at_once(start, servicer):
    together, release = threading.Barrier(4, timeout=10), threading.Event()

    def react(texts, context):
        if together.wait() == 0:
            context.abort(Code.NOT_FOUND, "no such model")
        release.wait(30)

    servicer.react = react
    began = time.monotonic()
    with EmbeddingClient([start().address], in_flight=4) as client:
        with pytest.raises(ServingUnavailable, match="NOT_FOUND: no such model"):
            client.embed(long_texts(12))
    assert time.monotonic() - began < 5
    for thread in embed_threads():  # closing the client ended the requests that were still held up
        thread.join(5)
    assert embed_threads() == []
    assert len(servicer.sent) == 4
    release.set()


def test_parts_that_wait_to_be_sent_again_end_with_the_one_that_failed_for_good(start, servicer, monkeypatch):
    monkeypatch.setattr(channel, "FIRST_WAIT", 60)
    together = threading.Barrier(4, timeout=10)

    def react(texts, context):
        context.abort(Code.INTERNAL if together.wait() == 0 else Code.UNAVAILABLE, "told to")

    servicer.react = react
    with EmbeddingClient([start().address], in_flight=4) as client:
        with pytest.raises(ServingUnavailable, match="INTERNAL: told to"):
            client.embed(long_texts(8))
        for thread in embed_threads():
            thread.join(5)
        assert embed_threads() == []
    assert len(servicer.sent) == 4


def test_mutual_tls_goes_from_the_client_to_the_channel(start, tmp_path):
    files = write_certificates(tmp_path)
    pair = (files.server_key.read_bytes(), files.server.read_bytes())
    credentials = grpc.ssl_server_credentials([pair], files.authority.read_bytes(), True)
    tls = TlsFiles(str(files.authority), str(files.client), str(files.client_key))
    with EmbeddingClient([start(credentials=credentials).address], tls=tls) as client:
        np.testing.assert_array_equal(client.embed(["a"])[0], expected(["a"]))


# weight


def test_the_client_is_light_and_quick_to_import():
    code = (
        "import sys, time, numpy, grpc; began = time.perf_counter(); import serving.client; "
        "print(time.perf_counter() - began, *{'tensorflow', 'keras', 'tensorflow_serving'} & set(sys.modules))"
    )
    root = Path(channel.__file__).parents[2]
    run = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    seconds, *heavy = run.stdout.split()
    assert float(seconds) < 1
    assert heavy == []
