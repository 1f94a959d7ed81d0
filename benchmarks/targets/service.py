"""The search service as a process of its own, and callers of it who keep their connection."""

from __future__ import annotations

import http.client
import json
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

from common.errors import InputError

SAYS = re.compile(r"http://(?P<host>\S+):(?P<port>\d+) is the page")


class ServiceError(InputError):
    """The service did not start, or gave something else than an answer."""


class Service:
    """Answers as fast as it is asked: without a limit for one caller."""

    def __init__(self, index: str, serving: str, log: Path):
        command = [sys.executable, "-m", "search", "--index", index, "--serving", serving, "--port", "0", "--rate", "0"]
        self._log = log.open("w")
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._log, encoding="utf-8")
        assert self._process.stdout is not None
        said = SAYS.match(self._process.stdout.readline())
        if said is None:
            self.stop()
            raise ServiceError(f"the search service did not start; {log} says why")
        self.address = (said["host"], int(said["port"]))

    @property
    def pid(self) -> int:
        return self._process.pid

    def alive(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        self._process.terminate()
        self._process.communicate()
        self._log.close()

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Caller:
    """A client of the search service that keeps its connection."""

    def __init__(self, address: tuple[str, int]):
        self._address = address
        self._connect()

    def _connect(self) -> None:
        self._connection = http.client.HTTPConnection(*self._address, timeout=60)
        self._connection.connect()
        # Else the body of a question waits for the acknowledgement of its head.
        self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def similar(self, id: str, k: int = 10) -> Any:
        return self._ask("GET", f"/v1/companies/{quote(id, safe='')}/similar?k={k}")

    def search(self, text: str, mode: str) -> Any:
        return self._ask("POST", "/v1/search", {"text": text, "mode": mode})

    def suggest(self, prefix: str) -> Any:
        return self._ask("GET", f"/v1/suggest?prefix={quote(prefix, safe='')}")

    def facets(self) -> Any:
        return self._ask("GET", "/v1/facets")

    def answer(self, shown: str, anchor: str, candidate: str, said: str, rank: int) -> None:
        body = {"shown": shown, "anchor": anchor, "candidate": candidate, "answer": said, "rank": rank}
        self._ask("POST", "/v1/feedback", body)

    def close(self) -> None:
        self._connection.close()

    def _ask(self, method: str, path: str, body: dict | None = None) -> Any:
        content = None if body is None else json.dumps(body)
        headers = {"Content-Type": "application/json"} if body else {}
        try:
            response = self._response(method, path, content, headers)
        except ConnectionError:  # who was silent for some seconds finds it closed
            self._connect()
            response = self._response(method, path, content, headers)
        given = response.read()
        if response.status >= 300:
            raise ServiceError(f"{method} {path} was answered with {response.status}: {given[:200]!r}")
        return json.loads(given) if given else None

    def _response(
        self, method: str, path: str, content: str | None, headers: dict[str, str]
    ) -> http.client.HTTPResponse:
        self._connection.request(method, path, content, headers)
        return self._connection.getresponse()
