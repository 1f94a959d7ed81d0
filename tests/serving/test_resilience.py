"""The client against servers that die, refuse, or are full: every vector arrives, and is the right one."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc
import httpx
import numpy as np
import pytest
from embedded import EmbeddedServer
from prometheus_client.parser import text_string_to_metric_families
from trades import TRADES

from common.ports import free_port
from serving.client import EmbeddingClient, TextsRefused
from serving.endpoint.channel import Endpoint

OUTAGE = 10  # seconds
# One text a run makes the run over all texts last seconds, and a queue of one run is full at once.
BATCHING = "max_batch_size { value: 1 } max_enqueued_batches { value: 1 } num_batch_threads { value: 1 }"


@pytest.fixture(scope="module")
def texts():
    """2,000 texts, no two alike."""
    generator = np.random.default_rng(11)
    words = " ".join(TRADES.values()).split()
    made = {" ".join(generator.choice(words, generator.integers(4, 30))): None for _ in range(2_100)}
    return list(made)[:2_000]


@pytest.fixture(scope="module")
def expected(exports, texts):
    """What the served export makes of them in this process."""
    from serving.server.models.loaded import LoadedModel

    vectors = LoadedModel(exports[0]).encode([text.encode() for text in texts])
    # Vectors that could be mistaken for one another would prove nothing about their order.
    assert len(texts) == 2_000 and len(np.unique(vectors.round(4), axis=0)) > 1_900
    return vectors


@pytest.fixture(scope="module")
def slow(base, tmp_path_factory):
    """A server that is slow and full at once."""
    config = tmp_path_factory.mktemp("slow") / "batching.config"
    config.write_text(BATCHING)
    flags = ("--batching_parameters_file", str(config), "--xla_cpu_compilation_enabled=false")
    with EmbeddedServer(base, *flags) as running:
        yield running


def counted(server) -> dict[str, int]:
    """The requests that this process of the server has answered, by status."""
    page = httpx.get(f"{server.rest}/monitoring/prometheus/metrics", trust_env=False).text
    families = {family.name: family for family in text_string_to_metric_families(page)}
    samples = families[":tensorflow:serving:request_count"].samples
    return {sample.labels["status"]: int(sample.value) for sample in samples}


def test_a_full_queue_is_asked_again_until_every_text_has_its_vector(slow, texts, expected):
    with EmbeddingClient([slow.address], in_flight=4) as client:
        vectors, _ = client.embed(texts)
    assert counted(slow)["RESOURCE_EXHAUSTED"] > 0
    assert np.abs(vectors - expected).max() < 1e-5


def test_a_server_killed_for_ten_seconds_in_the_middle_of_a_run_costs_only_time(slow, texts, expected, monkeypatch):
    answered, third = [], threading.Event()
    predict = Endpoint.predict

    def noted(*arguments, **options):
        response = predict(*arguments, **options)
        answered.append(time.monotonic())
        if len(answered) == 3:
            third.set()
        return response

    monkeypatch.setattr(Endpoint, "predict", noted)
    # The client is closed first, so that a failing assertion does not wait for its retries.
    with ThreadPoolExecutor(1) as pool, EmbeddingClient([slow.address], in_flight=2) as client:
        running = pool.submit(client.embed, texts)
        assert third.wait(60)
        slow.kill()
        before = len(answered)
        time.sleep(OUTAGE)
        assert len(answered) == before and not running.done()
        slow.restart()
        vectors, names = running.result(120)
    assert len(vectors) == len(names) == 2_000 and len(set(names)) == 1
    assert np.abs(vectors - expected).max() < 1e-5
    # The process that came back answered the rest, and that was not little: the kill fell into the middle.
    assert counted(slow)["OK"] == len(answered) - before >= 3


# a proxy before the real server


class Proxy(grpc.GenericRpcHandler):
    """Passes bytes on to the real server, except a request that holds the poison, and counts what it answered."""

    def __init__(self, channel, poison=None):
        self._channel, self._poison = channel, poison
        self.answered = 0
        self.after = lambda: None  # called when a request was answered

    def service(self, details):
        def handle(data, context):
            if self._poison and self._poison in data:
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, "indigestible")
            response = self._channel.unary_unary(details.method)(data, timeout=60)
            self.answered += 1
            self.after()
            return response

        return grpc.unary_unary_rpc_method_handler(handle)


@contextmanager
def standing_before(server, **options):
    """A Proxy, its address and the gRPC server that it runs in."""
    with grpc.insecure_channel(server.address) as channel, ThreadPoolExecutor(8) as pool:
        proxy, running = Proxy(channel, **options), grpc.server(pool)
        running.add_generic_rpc_handlers([proxy])
        port = running.add_insecure_port("127.0.0.1:0")
        running.start()
        try:
            yield proxy, f"127.0.0.1:{port}", running
        finally:
            running.stop(None).wait()


def refused_at(address, texts, expected, position, text):
    """The one refusal among 2,000 texts; all others have their vectors."""
    with EmbeddingClient([address]) as client, pytest.raises(TextsRefused) as caught:
        client.embed([*texts[:position], text, *texts[position + 1 :]])
    (refusal,) = caught.value.refusals
    assert (refusal.position, refusal.text) == (position, text)
    others = np.arange(2_000) != position
    assert np.abs(caught.value.vectors - expected)[others].max() < 1e-5
    assert not caught.value.vectors[position].any()
    assert [bool(name) for name in caught.value.fingerprints] == others.tolist()
    return refusal


def test_one_refused_text_of_2000_fails_alone_and_is_named(server, texts, expected):
    refusal = refused_at(server.address, texts, expected, 777, "beer " * 250_000)
    assert refusal.reason.startswith("INVALID_ARGUMENT: a text of 1250000 bytes")


def test_one_text_refused_for_what_it_says_fails_alone(server, texts, expected):
    with standing_before(server, poison=b"poison pill") as (_, address, _):
        refusal = refused_at(address, texts, expected, 1_234, "a poison pill of a text")
    assert refusal.reason == "INVALID_ARGUMENT: indigestible"


def test_of_two_addresses_one_may_be_dead(server, texts, expected):
    for addresses in ([f"127.0.0.1:{free_port()}", server.address], [server.address, f"127.0.0.1:{free_port()}"]):
        with EmbeddingClient(addresses) as client:
            assert np.abs(client.embed(texts)[0] - expected).max() < 1e-5


def test_of_two_addresses_one_may_die_in_the_middle_of_a_run(server, texts, expected):
    with standing_before(server) as (proxy, address, running):
        proxy.after = lambda: running.stop(None) if proxy.answered >= 3 else None
        with EmbeddingClient([address, server.address], in_flight=2) as client:
            vectors, _ = client.embed(texts)
        # The contract and eight requests of 256 texts at most: it began with the one and ended with the other.
        assert 3 <= proxy.answered < 9
    assert np.abs(vectors - expected).max() < 1e-5
