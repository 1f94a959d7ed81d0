"""Proxies on this machine between the parts, which can be told to misbehave as networks and busy servers do."""

from __future__ import annotations

import http.client
import json
import random
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

SHARE = 0.6  # of requests or connections that suffer while a fault lasts
CHUNK = 1 << 16
ONE_HOP = ("content-length", "transfer-encoding", "connection", "keep-alive")


class HttpProxy:
    """In front of Elasticsearch. `trouble` is "", a status such as "429", "slow", "drop" or "cut"."""

    def __init__(self, target: str, seed: int):
        self.trouble, self.suffered = "", 0
        self._chance, self._host = random.Random(seed), urlsplit(target).netloc
        self._server = _Server(self)
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=[0.1], name="http-proxy", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def strike(self) -> str:
        """What this request is to suffer."""
        trouble = self.trouble
        if not trouble or self._chance.random() > SHARE:
            return ""
        self.suffered += 1
        return trouble

    def pause(self) -> None:
        time.sleep(self._chance.uniform(0.3, 2.0))

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self._host, timeout=180)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, proxy: HttpProxy):
        self.proxy = proxy
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Connections break here all the time, and are meant to."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    upstream: http.client.HTTPConnection | None = None

    def hand_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        trouble = self.server.proxy.strike()
        if trouble.isdecimal():
            said = json.dumps({"error": {"type": "soak", "reason": "busy"}, "status": int(trouble)}).encode()
            return self.respond(int(trouble), {"Content-Type": "application/json"}, said)
        if trouble == "drop":
            return self.hang_up()
        if trouble == "slow":
            self.server.proxy.pause()
        try:
            status, headers, content = self.ask(body)
        except (OSError, http.client.HTTPException):
            return self.hang_up()  # as a server that is away: the connection breaks
        self.respond(status, headers, content, cut=trouble == "cut")

    def ask(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        self.upstream = self.upstream or self.server.proxy.connect()
        try:
            self.upstream.request(self.command, self.path, body, dict(self.headers))
            response = self.upstream.getresponse()
            return response.status, dict(response.headers), response.read()
        except BaseException:
            self.upstream.close()
            self.upstream = None
            raise

    def respond(self, status: int, headers: dict[str, str], body: bytes, cut: bool = False) -> None:
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() not in ONE_HOP:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[: len(body) // 2] if cut else body)
        if cut:
            self.hang_up()

    def hang_up(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def finish(self) -> None:
        with suppress(OSError):
            super().finish()
        if self.upstream:
            self.upstream.close()

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = hand_on

    def log_message(self, *_: object) -> None:
        pass


class TcpProxy:
    """In front of the model's server. `trouble` is "", "slow" or "drop"; `target` may move while it runs."""

    def __init__(self, target: Callable[[], tuple[str, int]], seed: int):
        self.suffered = 0
        self._trouble, self._target, self._chance = "", target, random.Random(seed)
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.address = f"127.0.0.1:{self._listening.getsockname()[1]}"
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, name="tcp-proxy", daemon=True).start()

    @property
    def trouble(self) -> str:
        return self._trouble

    @trouble.setter
    def trouble(self, trouble: str) -> None:
        """What is open is dropped at once: gRPC keeps one connection for all."""
        self._trouble = trouble
        if trouble == "drop":
            for one in list(self._open):
                self._drop(one)

    def stop(self) -> None:
        self._listening.close()
        for one in list(self._open):
            self._drop(one)

    def _drop(self, one: socket.socket) -> None:
        self.suffered += 1
        self._open.discard(one)
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                caller, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=[caller], name="tcp-proxy-one", daemon=True).start()

    def _serve(self, caller: socket.socket) -> None:
        with caller:
            if self._trouble == "drop" and self._chance.random() < SHARE:
                self.suffered += 1
                return
            try:
                server = socket.create_connection(self._target(), timeout=10)
            except OSError:
                return
            with server:
                server.settimeout(None)
                self._open |= {caller, server}
                back = threading.Thread(target=self._pour, args=[server, caller], daemon=True)
                back.start()
                self._pour(caller, server)
                back.join()
                self._open -= {caller, server}

    def _pour(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(CHUNK):
                if self._trouble == "slow":
                    self.suffered += 1
                    time.sleep(self._chance.uniform(0.1, 0.6))
                sink.sendall(data)
        except OSError:
            pass
        for one in (source, sink):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
