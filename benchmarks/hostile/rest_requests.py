"""Hostile requests over REST: paths, verbs, bodies, encodings and headers that no client sends by mistake."""

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any


@dataclass(frozen=True)
class Rest:
    """One request as an HTTP client sends it."""

    kind: str
    verb: str
    path: str
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Raw:
    """Bytes for the REST port, HTTP or not."""

    kind: str
    data: bytes


Make = Callable[[Random, object], Rest | Raw]
KINDS: list[Make] = []
LARGE_KINDS: list[Make] = []


def kind(kinds: list[Make]) -> Callable[[Make], Make]:
    def add(make: Make) -> Make:
        kinds.append(make)
        return make

    return add


PATHS = [
    "/v1/models/pause:predict", "/v1/models/pause:classify", "/v1/models/pause:regress", "/v1/models/pause/metadata",
    "/v1/models/pause/versions/1:predict", "/v1/models/pause/versions/-1:predict", "/v1/models/%2e%2e:predict",
    "/v1/models/..%2f..%2fetc", "/v1/models//:predict", "/v1/models/pause/labels/%00:predict",
    "/v1/models/pause:reload",
    "/v1/models/pause/versions/99999999999999999999:predict", "/monitoring/prometheus/metrics/x", "/",
    "/v2", "/V1/MODELS",
]  # fmt: skip
VERBS = ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE"]
DOCUMENTS: list[Any] = [
    {}, [], None, 7, "x", {"instances": []}, {"instances": None}, {"instances": [1]}, {"instances": [["a"], "b"]},
    {"instances": ["a"], "inputs": ["a"]}, {"inputs": {"text": {"b64": 1}}}, {"inputs": [{"b64": "====="}]},
    {"signature_name": 7, "instances": ["a"]}, {"signature_name": "../x", "instances": ["a"]}, {"examples": [1]},
    {"examples": [{"text": "a"}]}, {"examples": []}, {"instances": ["\ud800"]}, {"inputs": "a"}, {"instances": [1e999]},
]  # fmt: skip


@kind(KINDS)
def bad_json(random, _):
    whole = b'{"instances": ["bank loans", {"b64": "YmVlcg=="}]}'
    body = random.choice([whole[: random.randrange(len(whole))], random.randbytes(200), b"[" * 5_000, b'{"a":' * 3_000])
    return Rest("bad JSON", "POST", random.choice(PATHS[:3]), body)


@kind(KINDS)
def wrong_document(random, _):
    body = json.dumps(random.choice(DOCUMENTS)).encode()
    return Rest("wrong document", "POST", random.choice(PATHS[:5]), body)


@kind(KINDS)
def wrong_path(random, _):
    body = b'{"instances": ["bank"]}'
    return Rest("wrong path", random.choice(VERBS), random.choice(PATHS), random.choice([b"", body]))


@kind(KINDS)
def wrong_encoding(random, _):
    body = b'{"instances": ["bank"]}'
    packed = random.choice([body, gzip.compress(body, mtime=0), gzip.compress(body, mtime=0)[:-9], b""])
    encoding = random.choice(["gzip", "GZIP", "br", "gzip, gzip", "x" * 999])
    headers = {"Content-Encoding": encoding, "Content-Type": random.choice(["", "text/html", "application/grpc"])}
    return Rest("wrong encoding", "POST", PATHS[0], packed, headers)


@kind(KINDS)
def bad_headers(random, _):
    headers = [
        b"Content-Length: -1", b"Content-Length: 99999999999999999999", b"Content-Length: 5\r\nContent-Length: 6",
        b"Transfer-Encoding: chunked\r\nContent-Length: 3", b"Transfer-Encoding: x", b"Host: a\r\nHost: b", b": x",
        b"X\0Y: z", b"X: " + b"y" * 70_000, b"Content-Length: 23", b"Expect: 100-continue", b"Upgrade: websocket",
    ]  # fmt: skip
    line = random.choice(
        [b"POST /v1/models/pause:predict HTTP/1.1", b"GET / HTTP/9.9", b"\x16\x03\x01", b"PRI * HTTP/2.0"]
    )
    return Raw(
        "bad headers", line + b"\r\n" + random.choice(headers) + b"\r\n\r\n" + random.choice([b"", b"{}", b"5\r\nx"])
    )


@kind(LARGE_KINDS)
def gzip_bomb(random, _):
    return Rest(
        "gzip bomb", "POST", PATHS[0], gzip.compress(bytes(64 * 2**20), 1, mtime=0), {"Content-Encoding": "gzip"}
    )
