"""Requests of one client go to all servers alike: to several addresses, and to all that a name resolves to."""

import socket
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from types import SimpleNamespace

import grpc
import httpx
import pytest
from companies import MODEL, OTHER_MODEL
from embedded import EmbeddedServer
from encoder import Encoder
from prometheus_client.parser import text_string_to_metric_families
from waiting import wait_until

from common.ports import free_port
from serving.client import EmbeddingClient
from serving.endpoint import pods, versions
from serving.endpoint.channel import ModelNotServed, ServingUnavailable
from serving.endpoint.connection import TlsFiles
from serving.endpoint.withdrawal import NotWithdrawn, wait_until_gone

NAME = "pause-serving.test"
EVEN = 0.1  # how far from its share a server's load may be
REQUESTS = 400


@pytest.fixture
def connect():
    with ExitStack() as stack:
        yield lambda *addresses, **options: stack.enter_context(
            EmbeddingClient(addresses, **{"deadline": 10.0, **options})
        )


@pytest.fixture
def name_server(monkeypatch):
    """What NAME resolves to, to be changed; an OSError is raised. All other names are the system's."""
    real, zone = socket.getaddrinfo, SimpleNamespace(hosts=[], asked=0)

    def resolve(host, port, *rest, **named):
        if host != NAME:
            return real(host, port, *rest, **named)
        zone.asked += 1
        if isinstance(zone.hosts, OSError):
            raise zone.hosts
        return [entry for one in zone.hosts for entry in real(one, port, *rest, **named)]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return zone


def embed(client, count, model=MODEL):
    for number in range(count):
        assert client.embed([f"text {number}"], model)[1] == [model]


# whom a request goes to


@pytest.mark.parametrize("model", [MODEL, None], ids=["by fingerprint", "the newest"])
def test_each_server_has_its_equal_share(started, connect, model):
    encoders = [started() for _ in range(3)]
    client = connect(*(one.address for one in encoders))
    client.contract(model)
    for number in range(60):
        client.embed([f"text {number}"], model)
    assert {len(one.texts) for one in encoders} <= {19, 20, 21}


def test_the_share_of_one_that_is_away_falls_to_all_others_alike(started, connect):
    encoders = [started() for _ in range(3)]
    client = connect(*(one.address for one in encoders))
    embed(client, 3)
    encoders[1].stop()
    embed(client, 60)
    assert abs(len(encoders[0].texts) - len(encoders[2].texts)) <= 2


def test_requests_of_several_threads_are_spread_as_well(started, connect):
    encoders = [started() for _ in range(2)]
    client = connect(*(one.address for one in encoders))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: client.embed([f"text {number}"], MODEL), range(200)))
    assert [len(one.texts) for one in encoders] == [pytest.approx(100, abs=100 * EVEN)] * 2


def test_one_that_is_silent_leaves_time_to_ask_another_within_the_deadline(started, connect):
    """A search waits for five seconds in all: the try at the first server must not take all of them."""
    well = started()
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        client = connect(f"127.0.0.1:{silent.getsockname()[1]}", well.address, timeout=30.0, deadline=1.0)
        client.contract(MODEL)
        began = time.monotonic()
        embed(client, 20)
        assert time.monotonic() - began < 0.9 and len(well.texts) == 20


def test_one_that_is_away_is_not_asked_again_until_it_is_connected(started, connect, monkeypatch):
    monkeypatch.setattr(pods, "FIRST_OUT", 0.0)
    gone, well = f"127.0.0.1:{free_port()}", started()
    client = connect(gone, well.address)
    embed(client, 1)
    [out, _] = client._endpoint.pods
    wait_until(lambda: out.is_out)  # although its time is over


def test_one_whose_connection_went_idle_is_asked_again(connect, monkeypatch):
    """gRPC tries to connect by itself after a failure, but not after a connection that was well is lost."""
    monkeypatch.setattr(pods, "FIRST_OUT", 0.0)
    [lost, _] = connect("127.0.0.1:1", "127.0.0.1:2")._endpoint.pods
    lost.failed()
    lost.heard(grpc.ChannelConnectivity.CONNECTING)
    assert lost.is_out
    lost.heard(grpc.ChannelConnectivity.IDLE)
    assert not lost.is_out


# versions, while a model is rolled out


def test_a_server_that_has_not_the_model_yet_is_passed_over_and_has_its_share_once_it_has(
    started, connect, monkeypatch
):
    monkeypatch.setattr(versions, "LOOK_AGAIN_SECONDS", 0.3)
    ahead, behind = started(OTHER_MODEL), started(OTHER_MODEL)
    number = ahead.publish(MODEL)
    client = connect(behind.address, ahead.address)
    embed(client, 10)
    assert (len(ahead.texts), len(behind.texts)) == (10, 0)
    assert behind.publish(MODEL) == number

    def is_asked_again():
        embed(client, 1)
        return bool(behind.texts)

    wait_until(is_asked_again, seconds=30)
    before = len(behind.texts)
    embed(client, 40)
    assert len(behind.texts) - before == pytest.approx(20, abs=2)


def test_a_server_that_lets_go_of_the_model_ends_no_call_while_another_has_it(started, connect):
    first, second = started(MODEL), started(MODEL)
    client = connect(first.address, second.address)
    embed(client, 4)
    first.versions = {2: first.versions[1]}  # under another number,
    embed(client, 4)
    first.contract = Encoder.contract.fget(started(OTHER_MODEL))  # as another model,
    embed(client, 4)
    assert len(second.texts) == 2 + 2 + 4  # its half, its half, and all
    second.withdraw(1)
    second.publish(OTHER_MODEL)
    with pytest.raises(ModelNotServed, match=MODEL):  # and then nowhere
        client.embed(["one more"], MODEL)


# names


@pytest.fixture
def port():
    return free_port()


@pytest.fixture
def at(started, port):
    """A server at an address of this machine, at the same port as the others."""
    return lambda host: started(at=f"{host}:{port}")


def test_all_addresses_of_a_name_have_their_equal_share(at, connect, name_server, port):
    name_server.hosts = ["127.0.0.2", "127.0.0.1"]
    one, two = at("127.0.0.1"), at("127.0.0.2")
    client = connect(f"dns:///{NAME}:{port}")
    embed(client, 40)
    assert (len(one.texts), len(two.texts)) == (20, 20)
    assert name_server.asked == 1  # and again only after some time


def test_a_server_that_comes_later_is_found_while_all_connections_hold(at, connect, name_server, port, monkeypatch):
    monkeypatch.setattr(pods, "RESOLVE_SECONDS", 0.05)
    name_server.hosts = ["127.0.0.1"]
    one = at("127.0.0.1")
    client = connect(f"dns:///{NAME}:{port}")
    embed(client, 4)
    later = at("127.0.0.3")
    name_server.hosts = ["127.0.0.1", "127.0.0.3"]
    wait_until(lambda: embed(client, 2) or bool(later.texts), seconds=10)
    before = len(one.texts), len(later.texts)
    embed(client, 40)
    assert [len(one.texts) - before[0], len(later.texts) - before[1]] == [20, 20]


def test_a_server_that_left_its_name_gets_nothing_more_and_answers_what_it_has(
    at, connect, name_server, port, monkeypatch
):
    monkeypatch.setattr(pods, "RESOLVE_SECONDS", 0.05)
    name_server.hosts = ["127.0.0.1", "127.0.0.2"]
    stays, leaves = at("127.0.0.1"), at("127.0.0.2")
    client = connect(f"dns:///{NAME}:{port}")
    embed(client, 4)
    held, asked = threading.Event(), threading.Event()
    react, leaves.hold = leaves.hold, lambda: (asked.set(), held.wait(20))
    with ThreadPoolExecutor(2) as pool:
        under_way = [pool.submit(client.embed, [f"held {number}"], MODEL) for number in range(2)]
        assert asked.wait(10)
        leaves.hold = react
        name_server.hosts = ["127.0.0.1"]
        wait_until(lambda: embed(client, 1) or len(client._endpoint.pods) == 1, seconds=10)
        before = len(leaves.texts)
        embed(client, 10)
        assert len(leaves.texts) == before
        held.set()
        assert [one.result(10)[1] for one in under_way] == [[MODEL], [MODEL]]
    assert any(text.startswith("held") for text in leaves.texts) and stays.texts


def test_a_name_server_that_is_away_takes_nothing_away(at, connect, name_server, port, monkeypatch):
    monkeypatch.setattr(pods, "RESOLVE_SECONDS", 0.05)
    name_server.hosts = ["127.0.0.1"]
    one = at("127.0.0.1")
    client = connect(f"dns:///{NAME}:{port}")
    embed(client, 1)
    name_server.hosts, asked = socket.gaierror(socket.EAI_AGAIN, "try later"), name_server.asked
    wait_until(lambda: embed(client, 1) or name_server.asked > asked + 1, seconds=10)
    embed(client, 5)
    assert len(one.texts) > 6


def test_a_name_that_does_not_resolve_is_waited_for_and_then_named(at, connect, name_server, port):
    name_server.hosts = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    with pytest.raises(ServingUnavailable, match=f"{NAME}:{port} does not resolve: Name or service not known"):
        connect(f"dns:///{NAME}:{port}", deadline=0.4).contract()
    at("127.0.0.1")
    client = connect(f"dns:///{NAME}:{port}", deadline=10)
    threading.Timer(0.3, lambda: setattr(name_server, "hosts", ["127.0.0.1"])).start()
    assert client.contract().fingerprint == MODEL


def test_a_name_stands_beside_addresses(at, connect, name_server, port):
    name_server.hosts = ["127.0.0.1", "127.0.0.2"]
    named, other = [at("127.0.0.1"), at("127.0.0.2")], at("127.0.0.3")
    client = connect(other.address, f"dns:///{NAME}:{port}")
    wait_until(lambda: embed(client, 1) or len(client._endpoint.pods) == 3, seconds=10)
    embed(client, 30)
    assert all(len(one.texts) >= 10 for one in (*named, other))


def test_names_of_the_system_resolve(started, connect):
    """Really, by whatever this machine has; at another of localhost's addresses nothing may listen."""
    encoder = started()
    embed(connect(f"dns:///localhost:{encoder.address.rpartition(':')[2]}"), 3)
    assert len(encoder.texts) == 3


def test_a_certificate_is_held_against_the_name_and_not_against_the_address(certificates, name_server, port):
    """It is for localhost and 127.0.0.1: under another name nobody may answer, though the address fits."""
    pair = (certificates.server_key.read_bytes(), certificates.server.read_bytes())
    server = grpc.server(ThreadPoolExecutor(1))
    server.add_secure_port(f"127.0.0.1:{port}", grpc.ssl_server_credentials([pair]))
    server.start()
    name_server.hosts, tls = ["127.0.0.1"], TlsFiles(str(certificates.authority))
    try:
        for name, told in ((NAME, "do the TLS files fit"), ("localhost", "UNIMPLEMENTED")):
            with EmbeddingClient([f"dns:///{name}:{port}"], deadline=2.0, tls=tls) as client:
                with pytest.raises(ServingUnavailable, match=told):
                    client.contract()
    finally:
        server.stop(None).wait()


def test_a_withdrawal_waits_for_every_server_of_a_name(at, name_server, port):
    name_server.hosts = ["127.0.0.1", "127.0.0.2"]
    withdrawn, keeps = at("127.0.0.1"), at("127.0.0.2")
    for encoder in (withdrawn, keeps):
        encoder.publish(OTHER_MODEL)
    withdrawn.withdraw(2)
    with pytest.raises(NotWithdrawn, match=r"127\.0\.0\.2:.* still has it"):
        wait_until_gone([f"dns:///{NAME}:{port}"], "pause", [2], seconds=0.3)
    keeps.withdraw(2)
    wait_until_gone([f"dns:///{NAME}:{port}"], "pause", [2], seconds=10)
    name_server.hosts = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    with pytest.raises(NotWithdrawn, match="does not resolve: Name or service not known"):
        wait_until_gone([f"dns:///{NAME}:{port}"], "pause", [2])


# the real servers


@pytest.fixture(scope="module")
def real_servers(base):
    """Two at one port of two addresses of this machine."""
    plain = "--xla_cpu_compilation_enabled=false"
    with EmbeddedServer(base, plain) as first:
        where = ("--host", "127.0.0.2", "--port", str(first.port))
        with EmbeddedServer(base, *where, plain) as second:
            yield first, second


@pytest.fixture(params=["addresses", "ipv4", "name"])
def target(request, real_servers, name_server):
    """As flags have it."""
    name_server.hosts, port = ["127.0.0.1", "127.0.0.2"], real_servers[0].port
    return {
        "addresses": f"127.0.0.1:{port},127.0.0.2:{port}",
        "ipv4": f"ipv4:127.0.0.1:{port},127.0.0.2:{port}",
        "name": f"dns:///{NAME}:{port}",
    }[request.param].split(",")


def answered(server, host) -> int:
    """As it counts itself, in its present process."""
    page = httpx.get(f"http://{host}:{server.rest_port}/monitoring/prometheus/metrics", trust_env=False).text
    families = {family.name: family for family in text_string_to_metric_families(page)}
    counted = families.get(":tensorflow:serving:request_count")
    return sum(int(sample.value) for sample in counted.samples if sample.labels["status"] == "OK") if counted else 0


def test_two_real_servers_have_loads_within_a_tenth_of_even(real_servers, target):
    before = [answered(*one) for one in zip(real_servers, ("127.0.0.1", "127.0.0.2"), strict=True)]
    with EmbeddingClient(target) as client, ThreadPoolExecutor(4) as pool:
        model = client.contract().fingerprint
        made = list(pool.map(lambda number: client.embed([f"Makes part {number}"], model)[1], range(REQUESTS)))
    assert made == [[model]] * REQUESTS
    after = [answered(*one) for one in zip(real_servers, ("127.0.0.1", "127.0.0.2"), strict=True)]
    loads = [now - then for now, then in zip(after, before, strict=True)]
    assert sum(loads) >= REQUESTS
    assert loads == [pytest.approx(sum(loads) / 2, rel=EVEN)] * 2


@pytest.mark.parametrize("target", ["addresses", "name"], indirect=True)
def test_a_real_server_killed_under_load_fails_no_call_and_is_used_again_when_it_is_back(real_servers, target):
    _, second = real_servers
    done, failures, stop = Counter(), [], threading.Event()

    def ask(client, model, worker):
        while not stop.is_set():
            try:
                assert client.embed([f"Makes part {worker} {done[worker]}"], model)[1] == [model]
                done[worker] += 1
            except Exception as error:
                failures.append(error)
                return

    with EmbeddingClient(target) as client, ThreadPoolExecutor(3) as pool:
        model = client.contract().fingerprint
        asking = [pool.submit(ask, client, model, worker) for worker in range(3)]
        try:
            wait_until(lambda: sum(done.values()) > 50, seconds=120)
            second.kill()  # -9, under load
            at_kill = sum(done.values())
            wait_until(lambda: sum(done.values()) > at_kill + 100 or bool(failures), seconds=120)
            second.start()  # at the port it was told
            wait_until(lambda: answered(second, "127.0.0.2") > 20 or bool(failures), seconds=120)
        finally:
            stop.set()
        for one in asking:
            one.result(30)
    assert failures == []
