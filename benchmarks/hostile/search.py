"""Sends hostile requests to a search service, and checks each response."""

from __future__ import annotations

import json
import socket
from collections import Counter
from dataclasses import dataclass, field

from benchmarks.hostile.search_requests import Hostile, hostile_requests

SECONDS = 30.0
# What the service calls a part of it that is away; nothing else may be a 5xx.
AWAY = frozenset({"index_down", "serving_down", "wrong_model", "feedback_down", "keys_locked"})


@dataclass
class Report:
    """What came of a number of requests."""

    statuses: Counter[int] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)  # the first hundred


def attack(port: int, seed: int, count: int, parts_away: bool = False) -> Report:
    """`parts_away`: a back end is down, so that a 503 that names it is right."""
    report = Report()
    for number, request in enumerate(hostile_requests(seed, count)):
        response = _sent(port, request)
        report.kinds[request.kind] += 1
        if response.startswith(b"HTTP/1.1 "):
            report.statuses[int(response[9:12])] += 1
        fault = _fault(request, response, parts_away)
        if fault and len(report.faults) < 100:
            report.faults.append(f"seed {seed}, request {number}, {request.kind}: {fault}: {request.data[:200]!r}")
    return report


def _fault(request: Hostile, response: bytes, parts_away: bool) -> str | None:
    if not response.startswith(b"HTTP/1.1 "):
        return f"no answer but {response[:80]!r}" if request.complete or response else None
    status, (_, _, body) = int(response[9:12]), response.partition(b"\r\n\r\n")
    if status >= 500:
        return None if parts_away and status == 503 and _code(body) in AWAY else f"{status} {body[:200]!r}"
    if b"Traceback" in body:
        return "a traceback"
    if status >= 400 and body and b"application/json" in response.lower() and _code(body) is None:
        return f"a refusal in another form: {body[:200]!r}"
    return None


def _code(body: bytes) -> str | None:
    try:
        return str(json.loads(body)["error"]["code"])
    except (ValueError, KeyError, TypeError):
        return None


def _sent(port: int, request: Hostile) -> bytes:
    parts = []
    with socket.create_connection(("127.0.0.1", port), SECONDS) as client:
        try:
            client.sendall(request.data)
            if not request.complete:
                client.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # it has heard enough; its answer may be here all the same
        try:
            while part := client.recv(1 << 16):
                parts.append(part)
        except ConnectionResetError:
            pass
    return b"".join(parts).removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
