"""Clients that take their time, send too much, or come in crowds."""

import ssl
import time
import urllib.error
import urllib.request
from contextlib import ExitStack

import pytest
from certificates import write_certificates
from raw_http import connect, drip, rest, running

from search.access.addresses import proxies
from search.access.connections import ConnectionLimits
from search.app import create_app
from search.server import Tls, server_config
from search.settings import Settings

QUICK = ConnectionLimits(header_seconds=0.5, idle_seconds=1, write_seconds=1.0, linger_seconds=0.2)
GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture
def serve_at(index, embedder):
    with ExitStack() as stack:

        def start(limits=QUICK, **settings):
            app = create_app(index, embedder, Settings(rate=0, **settings))
            return stack.enter_context(running(server_config(app, limits)))

        yield start


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def answered(client) -> bytes:
    """Headers and a body of known length."""
    said = b""
    while b"\r\n\r\n" not in said:
        said += client.recv(1 << 16)
    return said


def test_headers_that_come_a_byte_at_a_time_are_cut_off(serve_at):
    with connect(serve_at()) as client:
        said = drip(client, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 10_000, 0.05)
    assert status(said) == 408
    assert b'"code":"too_slow"' in said


def test_a_connection_that_says_nothing_is_closed(serve_at):
    with connect(serve_at()) as client:
        assert rest(client) == b""


def test_blank_lines_do_not_hold_a_connection(serve_at):
    with connect(serve_at()) as client:
        client.sendall(GET)
        assert status(answered(client)) == 200
        assert drip(client, b"\r\n" * 10_000, 0.05) == b""


def test_a_connection_that_is_idle_is_closed(serve_at):
    with connect(serve_at()) as client:
        for _ in range(2):  # it serves several
            client.sendall(GET)
            assert status(answered(client)) == 200
        assert rest(client) == b""


def test_a_second_request_has_to_hurry_too(serve_at):
    with connect(serve_at()) as client:
        client.sendall(GET)
        assert status(answered(client)) == 200
        assert status(drip(client, GET[:-4] + b"\r\nX: " + b"x" * 10_000, 0.05)) == 408


def test_a_body_that_comes_a_byte_at_a_time_is_cut_off(serve_at):
    head = (
        b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n"
    )
    with connect(serve_at(body_seconds=0.5)) as client:
        client.sendall(head + b"\r\n")
        said = drip(client, b" " * 10_000, 0.05)
    assert status(said) == 408
    assert b"connection: close" in said.lower()
    assert b'"code":"too_slow"' in said


def test_a_body_that_nobody_waits_for_does_not_hold_a_connection(serve_at):
    with connect(serve_at()) as client:
        client.sendall(b"POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n")
        assert status(answered(client)) == 404
        drip(client, b" " * 10_000, 0.05)


def test_an_answer_that_nobody_takes_does_not_hold_a_connection(serve_at):
    port = serve_at()
    request = b"GET /static/style.css HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with connect(port) as client:
        client.settimeout(1)
        try:
            for _ in range(5_000):  # more than all buffers between the two take
                client.sendall(request)
        except OSError:
            pass
        client.settimeout(30)
        began = time.monotonic()
        while time.monotonic() - began < 30:
            try:
                client.sendall(request)
            except TimeoutError:
                break
            except OSError:  # the server is gone
                return
            time.sleep(0.05)
    raise AssertionError("still there")


@pytest.mark.parametrize(
    "headers",
    [b"X: " + b"x" * 70_000 + b"\r\n", b"X: y\r\n" * 20_000, b"X" * 70_000 + b": y\r\n"],
    ids=["a long one", "many", "a long name"],
)
def test_headers_too_large_are_refused(serve_at, headers):
    with connect(serve_at(ConnectionLimits())) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + headers + b"\r\n")
        assert status(rest(client)) == 431


def test_a_header_without_end_is_refused(serve_at):
    with connect(serve_at(ConnectionLimits())) as client:
        sent = 0
        try:
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ")
            while sent < 50_000_000:
                sent += client.send(b"x" * 10_000)
        except OSError:
            pass
        assert sent < 50_000_000


def test_an_address_too_long_is_refused_and_a_long_one_is_not(serve_at):
    port = serve_at(ConnectionLimits())
    for length, expected in ((70_000, 431), (30_000, 200)):
        with connect(port) as client:
            client.sendall(
                b"GET /healthz?x=" + b"x" * length + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            )
            assert status(rest(client)) == expected


def test_one_connection_too_many_is_told_so_and_served_when_another_has_ended(serve_at):
    port = serve_at(ConnectionLimits(connections=3))
    with ExitStack() as stack:
        held = [stack.enter_context(connect(port)) for _ in range(3)]
        for client in held:
            client.sendall(GET)
            assert status(answered(client)) == 200
        with connect(port) as another:
            assert status(rest(another)) == 503
        held[0].close()
        for _ in range(100):
            with connect(port) as another:
                another.sendall(GET)
                if status(answered(another)) == 200:
                    return
            time.sleep(0.05)
    raise AssertionError("never served")


def test_an_upgrade_to_a_websocket_is_an_ordinary_request(serve_at):
    upgrade = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eA==\r\n"
    with connect(serve_at()) as client:
        client.sendall(b"GET /v1/companies/air-a HTTP/1.1\r\nHost: localhost\r\n" + upgrade + b"\r\n")
        assert status(answered(client)) == 200


def asked(port, **headers) -> int:
    with urllib.request.urlopen(
        urllib.request.Request(f"http://127.0.0.1:{port}/v1/facets", headers=headers)
    ) as answer:
        return answer.status


@pytest.mark.parametrize(("named", "expected"), [("127.0.0.1", [200, 200, 429]), ("192.0.2.1", [200, 429, 429])])
def test_only_a_proxy_that_is_named_is_believed_about_who_asks(index, embedder, named, expected):
    app = create_app(index, embedder, Settings(rate=0.001, burst=1))
    statuses = []
    with running(server_config(app, proxies=proxies(named))) as port:
        for forwarded in (
            "198.51.100.1",
            "198.51.100.2",
            "198.51.100.9, 198.51.100.2",
        ):  # the last entry is the proxy's
            try:
                statuses.append(asked(port, **{"X-Forwarded-For": forwarded}))
            except urllib.error.HTTPError as refused:
                statuses.append(refused.code)
    assert statuses == expected


def test_without_a_named_proxy_nobody_is_believed(index, embedder, monkeypatch):
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")  # what uvicorn reads where nothing is said
    app = create_app(index, embedder, Settings(rate=0.001, burst=1))
    with running(server_config(app)) as port:
        assert asked(port, **{"X-Forwarded-For": "198.51.100.1"}) == 200
        with pytest.raises(urllib.error.HTTPError, match="429"):
            asked(port, **{"X-Forwarded-For": "198.51.100.2"})


def test_a_proxy_of_ipv4_is_known_in_the_dress_of_ipv6_too():
    assert proxies("10.0.0.7, 10.1.0.0/16,2001:db8::1") == [
        "10.0.0.7/32", "::ffff:10.0.0.7/128", "10.1.0.0/16", "::ffff:10.1.0.0/112", "2001:db8::1/128"
    ]  # fmt: skip


def test_with_a_certificate_it_serves_https(index, embedder, tmp_path):
    files = write_certificates(tmp_path / "certificates")
    app = create_app(index, embedder, Settings(rate=0))
    with running(server_config(app, QUICK, tls=Tls(files.server, files.server_key))) as port:
        trusting = ssl.create_default_context(cafile=files.authority)
        with urllib.request.urlopen(f"https://localhost:{port}/v1/companies/air-a", context=trusting) as answer:
            assert answer.headers["Strict-Transport-Security"]
        with connect(port) as plain:  # what is no TLS is no request
            plain.sendall(GET)
            assert not rest(plain).startswith(b"HTTP/1.1 200")
