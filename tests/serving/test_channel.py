import random
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import grpc
import pytest

from common.ports import free_port
from serving import wire_pb2 as wire
from serving.endpoint import channel
from serving.endpoint.channel import Abandoned, Endpoint, Refused, ServingUnavailable
from serving.endpoint.connection import METHOD, AddressError, TlsFiles

Code = grpc.StatusCode
REQUEST = wire.PredictRequest(model_spec=wire.ModelSpec(name="pause"))
OTHERS = [code for code in Code if code not in (*channel.RETRIED, *channel.CONTENT, Code.OK)]


class Stub:
    """Answers with the model's name; fails as it is told to."""

    def __init__(self, *failures, always=None, details="told to"):
        self.failures, self.always, self.details = list(failures), always, details
        self.asked = 0
        self.entered, self.hold = threading.Event(), threading.Event()
        self.hold.set()

    def __call__(self, request, context):
        self.asked += 1
        self.entered.set()
        self.hold.wait(30)
        failure = self.failures.pop(0) if self.failures else self.always
        if failure:
            context.abort(failure, self.details)
        return wire.PredictResponse(model_spec=request.model_spec)


@contextmanager
def served(stub, credentials=None, port=0):
    handler = grpc.unary_unary_rpc_method_handler(
        stub, wire.PredictRequest.FromString, wire.PredictResponse.SerializeToString
    )
    service, method = METHOD.strip("/").split("/")
    with ThreadPoolExecutor(4) as pool:
        server = grpc.server(pool)
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {method: handler}),))
        address = f"127.0.0.1:{port}"
        port = server.add_secure_port(address, credentials) if credentials else server.add_insecure_port(address)
        server.start()
        try:
            yield f"127.0.0.1:{port}"
        finally:
            stub.hold.set()
            server.stop(None).wait()


def endpoint(*addresses, timeout=10.0, deadline=20.0, tls=None):
    return closing(Endpoint(addresses, timeout, deadline, tls))


@pytest.fixture
def no_waits(monkeypatch):
    monkeypatch.setattr(channel, "FIRST_WAIT", 0.001)


# statuses


@pytest.mark.parametrize("code", channel.RETRIED, ids=lambda code: code.name)
def test_a_sick_service_is_asked_again(no_waits, code):
    stub = Stub(code, code, code)
    with served(stub) as address, endpoint(address) as made:
        assert made.predict(REQUEST).model_spec.name == "pause"
    assert stub.asked == 4


@pytest.mark.parametrize("code", channel.CONTENT, ids=lambda code: code.name)
def test_refused_content_is_sent_once_and_has_the_servers_reason(code):
    stub = Stub(always=code, details="no\n  good")
    with served(stub) as address, endpoint(address) as made, pytest.raises(Refused) as caught:
        made.predict(REQUEST)
    assert caught.value.reason == f"{code.name}: no good"
    assert stub.asked == 1


@pytest.mark.parametrize("code", OTHERS, ids=lambda code: code.name)
def test_any_other_status_is_an_error_at_once(code):
    stub = Stub(always=code)
    with served(stub) as address, endpoint(address) as made:
        with pytest.raises(ServingUnavailable, match=f"{address} answered {code.name}: told to"):
            made.predict(REQUEST)
    assert stub.asked == 1


@pytest.mark.parametrize(
    "details",
    ["SERVER: Received message larger than max (5000 vs. 4000)", "gRPC message exceeds maximum size 4000: 5000"],
)
def test_a_message_over_the_size_limit_is_refused_and_not_sent_again(details):
    stub = Stub(always=Code.RESOURCE_EXHAUSTED, details=details)
    with served(stub) as address, endpoint(address) as made, pytest.raises(Refused, match=r"larger|exceeds"):
        made.predict(REQUEST)
    assert stub.asked == 1


# waiting


class Patience(threading.Event):
    """Notes how long it is waited for, without waiting; set after as many waits as it has."""

    def __init__(self, enough):
        super().__init__()
        self.enough, self.waits = enough, []

    def wait(self, timeout=None):
        self.waits.append(timeout)
        if len(self.waits) == self.enough:
            self.set()
        return self.is_set()


def test_each_wait_is_twice_the_last_up_to_five_seconds(monkeypatch):
    monkeypatch.setattr(random, "uniform", lambda low, high: (low + high) / 2)
    patience = Patience(8)
    with served(Stub(always=Code.UNAVAILABLE)) as address, endpoint(address, deadline=60) as made:
        with pytest.raises(Abandoned):
            made.predict(REQUEST, patience)
    assert patience.waits == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5])


def test_waits_differ_between_clients_by_up_to_a_half():
    patience = [Patience(1) for _ in range(20)]
    with served(Stub(always=Code.UNAVAILABLE)) as address, endpoint(address) as made:
        for each in patience:
            with pytest.raises(Abandoned):
                made.predict(REQUEST, each)
    first = [each.waits[0] for each in patience]
    assert len(set(first)) > 15
    assert 0.05 <= min(first) < 0.1 < max(first) <= 0.15


def test_a_request_that_is_abandoned_before_it_starts_is_not_sent():
    stub, abandoned = Stub(), threading.Event()
    abandoned.set()
    with served(stub) as address, endpoint(address) as made, pytest.raises(Abandoned):
        made.predict(REQUEST, abandoned)
    assert stub.asked == 0


def test_when_the_deadline_is_over_all_addresses_and_the_reason_are_named():
    gone = f"127.0.0.1:{free_port()}"
    began = time.monotonic()
    with served(Stub(always=Code.RESOURCE_EXHAUSTED)) as full, endpoint(full, gone, deadline=0.6) as made:
        with pytest.raises(ServingUnavailable, match=f"{full}, {gone} gave no answer .*is the server up.*UNAVAILABLE"):
            made.predict(REQUEST)
    assert time.monotonic() - began < 3


def test_a_server_that_hangs_costs_one_timeout_a_try():
    stub = Stub()
    stub.hold.clear()
    with served(stub) as address, endpoint(address, timeout=0.1, deadline=0.8) as made:
        with pytest.raises(ServingUnavailable, match="DEADLINE_EXCEEDED"):
            made.predict(REQUEST)
    assert 2 <= stub.asked <= 8


def test_closing_ends_the_requests_under_way():
    stub = Stub()
    stub.hold.clear()
    with served(stub) as address, endpoint(address) as made, ThreadPoolExecutor(1) as pool:
        under_way = pool.submit(made.predict, REQUEST)
        assert stub.entered.wait(10)
        made.close()
        with pytest.raises(ServingUnavailable):
            under_way.result(5)
        with pytest.raises(ServingUnavailable, match="closed"):
            made.predict(REQUEST)


def test_a_server_that_comes_back_is_found_again(monkeypatch):
    tried = threading.Semaphore(0)
    monkeypatch.setattr(random, "uniform", lambda low, high: tried.release() or low)
    stub = Stub()
    with ThreadPoolExecutor(1) as pool:
        with served(stub) as address:
            made = pool.submit(Endpoint, [address], 10, 30).result()
            made.predict(REQUEST)
        with closing(made):
            answer = pool.submit(made.predict, REQUEST)
            assert all(tried.acquire(timeout=10) for _ in range(3))  # three failures, then it is back
            with served(stub, port=address.rpartition(":")[2]):
                assert answer.result(20).model_spec.name == "pause"


# fail-over


def test_an_address_that_is_down_costs_one_try_and_no_wait(monkeypatch):
    monkeypatch.setattr(channel, "FIRST_WAIT", 60)
    sick, well = Stub(always=Code.UNAVAILABLE), Stub()
    with served(sick) as first, served(well) as second, endpoint(first, second) as made:
        for _ in range(20):
            made.predict(REQUEST)
        assert (sick.asked, well.asked) == (1, 20)
        sick.always, well.always = None, Code.RESOURCE_EXHAUSTED
        for _ in range(5):
            made.predict(REQUEST)
    assert (sick.asked, well.asked) == (6, 21)


def test_an_address_where_nothing_listens_is_passed_over(monkeypatch):
    monkeypatch.setattr(channel, "FIRST_WAIT", 60)
    with served(Stub()) as well, endpoint(f"127.0.0.1:{free_port()}", well) as made:
        assert made.predict(REQUEST).model_spec.name == "pause"


def test_an_address_that_is_silent_costs_one_timeout_in_all(monkeypatch):
    monkeypatch.setattr(channel, "FIRST_WAIT", 60)
    with socket.socket() as silent, served(Stub()) as well:
        silent.bind(("127.0.0.1", 0))
        silent.listen()  # connections are taken, and never answered
        with endpoint(f"127.0.0.1:{silent.getsockname()[1]}", well, timeout=0.5) as made:
            began = time.monotonic()
            for _ in range(10):
                made.predict(REQUEST)
            assert 0.5 <= time.monotonic() - began < 1.5


def test_only_when_every_address_has_failed_is_there_a_wait():
    first, second, patience = Stub(always=Code.UNAVAILABLE), Stub(always=Code.UNAVAILABLE), Patience(3)
    with served(first) as one, served(second) as two, endpoint(one, two) as made, pytest.raises(Abandoned):
        made.predict(REQUEST, patience)
    assert (first.asked, second.asked) == (3, 3)


# addresses


@pytest.mark.parametrize("address", ["localhost:8500", "[::1]:8500", "dns:///serving.models:8500", "unix:/run/pause"])
def test_addresses_that_grpc_knows_are_taken(address):
    with endpoint(address) as made:
        assert made.addresses == (address,)


@pytest.mark.parametrize("address", ["", "localhost", "http://localhost:8500", "https://a:1", ":8500", "a b:1", "a:b"])
def test_an_address_that_cannot_work_is_named(address):
    with pytest.raises(AddressError, match=f"'{address}' is not usable; write HOST:PORT"):
        Endpoint([address], 1, 1)


@pytest.mark.parametrize("addresses", [[], "localhost:8500"])
def test_addresses_are_a_list(addresses):
    with pytest.raises(AddressError, match="are a list such as"):
        Endpoint(addresses, 1, 1)


@pytest.mark.parametrize(("timeout", "deadline"), [(0, 1), (1, -1)])
def test_times_are_above_zero(timeout, deadline):
    with pytest.raises(ValueError, match=f"got {timeout} and {deadline}"):
        Endpoint(["localhost:8500"], timeout, deadline)


# TLS


def server_credentials(certificates, mutual=False):
    pair = (certificates.server_key.read_bytes(), certificates.server.read_bytes())
    authority = certificates.authority.read_bytes() if mutual else None
    return grpc.ssl_server_credentials([pair], authority, mutual)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_tls_reaches_a_server_that_the_authority_vouches_for(certificates, host):
    with served(Stub(), server_credentials(certificates)) as address:
        with endpoint(address.replace("127.0.0.1", host), tls=TlsFiles(str(certificates.authority))) as made:
            assert made.predict(REQUEST).model_spec.name == "pause"


def test_mutual_tls_reaches_a_server_that_asks_for_a_certificate(certificates):
    tls = TlsFiles(str(certificates.authority), str(certificates.client), str(certificates.client_key))
    with served(Stub(), server_credentials(certificates, mutual=True)) as address, endpoint(address, tls=tls) as made:
        assert made.predict(REQUEST).model_spec.name == "pause"


def test_mutual_tls_lets_no_one_in_without_a_certificate_it_knows(certificates, strangers):
    stub, authority = Stub(), str(certificates.authority)
    with served(stub, server_credentials(certificates, mutual=True)) as address:
        for tls in (TlsFiles(authority), TlsFiles(authority, str(strangers.client), str(strangers.client_key)), None):
            with endpoint(address, deadline=0.3, tls=tls) as made, pytest.raises(ServingUnavailable, match="TLS"):
                made.predict(REQUEST)
    assert stub.asked == 0


def test_a_server_that_is_not_vouched_for_is_an_error_at_once(certificates, strangers):
    began = time.monotonic()
    with served(Stub(), server_credentials(certificates)) as address:
        for tls in (TlsFiles(str(strangers.authority)), TlsFiles()):
            with endpoint(address, tls=tls) as made:
                with pytest.raises(ServingUnavailable, match="do the TLS files fit"):
                    made.predict(REQUEST)
    assert time.monotonic() - began < 5


def test_a_server_that_is_not_vouched_for_does_not_keep_the_next_one_from_being_asked(certificates, strangers):
    tls = TlsFiles(str(certificates.authority))
    with (
        served(Stub(), server_credentials(strangers)) as first,
        served(Stub(), server_credentials(certificates)) as second,
        endpoint(first, second, tls=tls) as made,
    ):
        assert made.predict(REQUEST).model_spec.name == "pause"


@pytest.mark.parametrize("role", ["authority", "certificate", "key"])
def test_a_tls_file_that_is_missing_is_named(certificates, role, tmp_path):
    names = {
        "authority": str(certificates.authority),
        "certificate": str(certificates.client),
        "key": str(certificates.client_key),
    }
    missing = str(tmp_path / "nowhere.pem")
    with pytest.raises(AddressError, match=f"TLS file {missing} cannot be read: No such file"):
        Endpoint(["localhost:8500"], 1, 1, TlsFiles(**{**names, role: missing}))


def test_a_tls_file_that_holds_something_else_is_named(certificates):
    key, certificate = str(certificates.client_key), str(certificates.client)
    with pytest.raises(AddressError, match=f"{key} holds no CERTIFICATE in PEM format"):
        Endpoint(["localhost:8500"], 1, 1, TlsFiles(key))
    with pytest.raises(AddressError, match=f"{certificate} holds no PRIVATE KEY"):
        Endpoint(["localhost:8500"], 1, 1, TlsFiles(None, certificate, certificate))


def test_a_certificate_without_its_key_is_an_error():
    with pytest.raises(AddressError, match=r"got certificate a.pem and key None"):
        TlsFiles(certificate="a.pem")
