"""Requests to the search service that no honest client sends, by seed: the same seed makes the same requests."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import quote

IDS = ("air-a", "bank", "ryanair", "nobody")
ROUTES = (
    "/v1/companies/{id}", "/v1/companies/{id}/similar", "/v1/suggest", "/v1/facets", "/v1/map", "/v1/search",
    "/v1/feedback", "/v1/status", "/healthz", "/readyz", "/metrics", "/", "/docs", "/openapi.json", "/static/{id}",
)  # fmt: skip
ASKED = ("/v1/search", "/v1/map")
POSTED = ("/v1/search", "/v1/map", "/v1/feedback")
METHODS = ("GET", "GET", "GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "CONNECT", "FROB", "get")
INJECTIONS = (
    "' OR 1=1 --", '"; DROP TABLE companies; --', '{"match_all": {}}', "*", "id = 'air-a' OR true", "../../etc/passwd",
    "%2e%2e%2f", "${jndi:ldap://x}", "{{7*7}}", "<script>alert(1)</script>", "\\", "`id`", "$(id)", "\r\nX: y",
    "a" * 600, "?",
    "#", "~", "[", "(", "a AND", "NOT", "_exists_:x", "\x00", "\u202e", "\ufeff", "\U0001f600" * 50, "ﷺ" * 100,
)  # fmt: skip
NUMBERS = ("-1", "0", "1", "100", "101", "1000", "1001", "9" * 30, "9" * 5000, "1e309", "NaN", "Infinity", "-0", "1.5",
           "0x10", "１", "", "null", "true", " 1", "+1", "1_0")  # fmt: skip
FIELDS = ("text", "like", "unlike", "filters", "mode", "k", "offset", "why", "shown", "anchor", "candidate", "answer",
          "rank", "__proto__", "")  # fmt: skip


@dataclass(frozen=True)
class Hostile:
    """`complete` where a server has all that it was promised, and so owes an answer."""

    kind: str
    data: bytes
    complete: bool = True


def hostile_requests(seed: int, count: int) -> Iterator[Hostile]:
    dice = random.Random(seed)
    for _ in range(count):
        yield dice.choice(KINDS)(dice)


def _request(method: str, target: str | bytes, headers: list[bytes] = [], body: bytes = b"") -> bytes:  # noqa: B006
    target = target.encode("utf-8", "surrogatepass") if isinstance(target, str) else target
    lines = [method.encode() + b" " + target + b" HTTP/1.1", b"Host: localhost", b"Connection: close", *headers]
    if body and not any(line.lower().startswith((b"content-length", b"transfer-encoding")) for line in headers):
        lines.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def _path(dice: random.Random) -> str:
    return dice.choice(ROUTES).replace("{id}", quote(dice.choice(IDS + INJECTIONS), safe=dice.choice(("", "/"))))


def _posted(dice: random.Random, body: bytes, kind: str, paths: tuple[str, ...] = POSTED) -> Hostile:
    named = dice.choice((b"application/json",) * 12 + (b"text/plain", b"application/xml", b"\xff", b""))
    return Hostile(kind, _request("POST", dice.choice(paths), [b"Content-Type: " + named], body))


# bodies


def random_bytes(dice: random.Random) -> Hostile:
    return _posted(dice, dice.randbytes(dice.choice((1, 10, 1_000, 100_000))), "random bytes")


def broken_json(dice: random.Random) -> Hostile:
    body = bytearray(json.dumps(_question(dice)).encode())
    for _ in range(dice.randint(1, 4)):
        place = dice.randrange(len(body))
        body[place : place + dice.randint(0, 3)] = dice.randbytes(dice.randint(0, 3)) or b"}"
    return _posted(dice, bytes(body) or b"{", "broken JSON")


def deep_json(dice: random.Random) -> Hostile:
    depth = dice.choice((10, 200, 5_000, 100_000))
    opening, closing = dice.choice(((b"[", b"]"), (b'{"filters":', b"}"), (b'{"like":[', b"]}")))
    return _posted(dice, opening * depth + b"1" + closing * dice.choice((depth, 0)), "deep JSON")


def odd_numbers(dice: random.Random) -> Hostile:
    members = ",".join(f'"{dice.choice(("k", "offset", "rank"))}": {dice.choice(NUMBERS) or 0}' for _ in range(2))
    return _posted(dice, f'{{"text": "x", {members}}}'.encode(), "odd numbers")


def wrong_types(dice: random.Random) -> Hostile:
    return _posted(dice, json.dumps(_question(dice)).encode("utf-8", "surrogatepass"), "wrong types")


def odd_texts(dice: random.Random) -> Hostile:
    text = dice.choice(
        ("." * 10_000, "\n \n" * 3_000, "。" * 10_000, '."' * 5_000, "\\ud800", "\\u0000", "\\udc00\\ud800", "́" * 9_999,
         "a " * 5_000, "\\t\\n", "‮x", "😀" * 5_000)
    ).replace("\n", "\\n").replace('"', '\\"')  # fmt: skip
    mode = dice.choice(("hybrid", "vector", "words"))
    body = (
        f'{{"text": "{text}", "mode": "{mode}", "why": {dice.choice(("true", "false"))}, "k": {dice.randint(1, 100)}}}'
    )
    return _posted(dice, body.encode(), "odd texts", ASKED)


def many_filters(dice: random.Random) -> Hostile:
    values = [dice.choice(INJECTIONS) for _ in range(dice.choice((1, 5, 50, 51, 3_000)))]
    fields = {name: values for name in ("sector", "industry", "country", "tags", "more")[: dice.randint(1, 5)]}
    question = {"text": dice.choice(INJECTIONS), "like": list(IDS[:1]) * dice.choice((0, 1, 20, 21)), "filters": fields}
    return _posted(dice, json.dumps(question).encode(), "many filters", ASKED)


def nearly_right(dice: random.Random) -> Hostile:
    """Right in form, so that it reaches the index and the endpoint, and odd in content."""
    odd = [one for one in INJECTIONS if one not in ("\x00",)]
    question = {
        "text": dice.choice(odd),
        "like": dice.sample(IDS[:2], dice.randint(0, 2)),
        "unlike": dice.sample(IDS[:1], dice.randint(0, 1)),
        "filters": {
            name: dice.sample(odd, dice.randint(0, 2)) for name in dice.sample(("sector", "country", "tags"), 2)
        },
        "mode": dice.choice(("hybrid", "vector", "words")),
        "k": dice.choice((1, 10, 100)),
        "offset": dice.choice((0, 0, 1, 999, 1_000)),
        "why": dice.choice((True, False)),
    }
    feedback = {"shown": dice.choice(odd)[:64], "candidate": dice.choice(IDS), "anchor": dice.choice(odd)[:500],
                "text": dice.choice(odd), "answer": dice.choice(("similar", "undo")), "rank": 1}  # fmt: skip
    if dice.random() < 0.2:
        return _posted(dice, json.dumps(feedback).encode(), "nearly right", ("/v1/feedback",))
    return _posted(dice, json.dumps(question).encode(), "nearly right", ASKED)


def right_addresses(dice: random.Random) -> Hostile:
    """As right in form as an address can be."""
    odd, id = quote(dice.choice(INJECTIONS)), quote(dice.choice(IDS + INJECTIONS), safe="")
    path = dice.choice(
        (f"/v1/companies/{id}", f"/v1/companies/{id}/similar?k={dice.choice(NUMBERS[2:4])}&why=true&sector={odd}",
         f"/v1/suggest?prefix={odd}", f"/v1/facets?country={odd}&tags={odd}", f"/v1/map?id={id}&tags={odd}",
         "/v1/status")
    )  # fmt: skip
    return Hostile("right addresses", _request("GET", path))


def _question(dice: random.Random) -> dict[str, object]:
    question: dict[str, object] = {"text": dice.choice(INJECTIONS), "k": dice.randint(-1, 101)}
    return question | {dice.choice(FIELDS): _value(dice, 3) for _ in range(dice.randint(1, 4))}


def _value(dice: random.Random, depth: int) -> object:
    leaf = dice.choice((None, True, -1, 2**70, 1e300, float("nan"), "", "similar", "\ud800", dice.choice(INJECTIONS)))
    nested = dice.randint(0, 3) if depth else 3
    if nested == 0:
        return [_value(dice, depth - 1) for _ in range(dice.randint(0, 3))]
    if nested == 1:
        return {dice.choice((*FIELDS, "sector", "tags")): _value(dice, depth - 1) for _ in range(dice.randint(0, 3))}
    return leaf


# addresses


def odd_queries(dice: random.Random) -> Hostile:
    names = ("k", "offset", "why", "prefix", "id", "sector", "industry", "country", "tags", "", "x")
    count = dice.choice((1, 3, 60, 2_000))
    pairs = [f"{dice.choice(names)}={quote(dice.choice(INJECTIONS + NUMBERS))}" for _ in range(count)]
    odd = dice.choice(("", "%", "%zz", "%ff", "&&&", "=", ";", "\u00e9"))
    return Hostile("odd queries", _request(dice.choice(METHODS), f"{_path(dice)}?{'&'.join(pairs)}{odd}"))


def odd_paths(dice: random.Random) -> Hostile:
    tricks: tuple[Callable[[str], str], ...] = (
        lambda path: "/" + path, lambda path: path.upper(), lambda path: path + "/",
        lambda path: path.replace("/", "%2f"),
        lambda path: path.replace("/", "//"), lambda path: "/." + path, lambda path: "/x/.." + path,
        lambda path: path + "%00", lambda path: path + ";x=y", lambda path: "http://evil.example" + path,
        lambda path: path.replace("/", "\\"), lambda path: path + "%ff%fe", lambda path: path + "/%ed%a0%80",
        lambda path: path.lstrip("/") or "*", lambda path: path + "x" * dice.choice((100, 5_000, 60_000, 70_000)),
    )  # fmt: skip
    return Hostile("odd paths", _request(dice.choice(METHODS), dice.choice(tricks)(_path(dice))))


# the protocol


def odd_headers(dice: random.Random) -> Hostile:
    odd = dice.choice((
        [b"Host: evil.example"],
        [b"Authorization: Bearer " + dice.randbytes(40).replace(b"\r", b"").replace(b"\n", b"")],
        [b"Authorization: " + b"x" * 10_000], [b"X: " + b"x" * 70_000], [b"X: y"] * 5_000, [b"bad name: x"], [b": x"],
        [b"X:\x00"], [b" folded: x"], [b"Accept: " + b"*/*;q=0.1," * 500], [b"X-Forwarded-For: " + b"1.2.3.4," * 50],
        [b"Content-Encoding: gzip"], [b"Range: bytes=0-,0-,0-"], [b"If-None-Match: " + b"x" * 999], [b"Upgrade: h2c"],
        [b"Connection: Upgrade", b"Upgrade: websocket"], [b"Accept-Encoding: \xff"], [b"Cookie: " + b"a=b;" * 1_000],
        [b"If-Modified-Since: never"], [b"Range: bytes=-1--1"], [b"Range: " + b"x" * 500], [b"Expect: 100-continue"],
    ))  # fmt: skip
    return Hostile("odd headers", _request(dice.choice(METHODS), _path(dice), odd))


def odd_framing(dice: random.Random) -> Hostile:
    body = b'{"text": "x"}'
    length, whole = dice.choice((
        (b"Content-Length: -1", True), (b"Content-Length: x", True), (b"Content-Length: 1e3", True),
        (b"Content-Length: 5", True), (b"Content-Length: 99999", False), (b"Content-Length: 99999999999", True),
        (b"Content-Length: 13\r\nContent-Length: 14", True),
        (b"Content-Length: 13\r\nTransfer-Encoding: chunked", True),
        (b"Transfer-Encoding: chunked", True), (b"Transfer-Encoding: gzip", True),
        (b"Transfer-Encoding: chunked, x", True),
    ))  # fmt: skip
    data = _request("POST", dice.choice(POSTED), [b"Content-Type: application/json", length], body)
    return Hostile("odd framing", data, whole)


def no_request(dice: random.Random) -> Hostile:
    data = dice.choice((
        dice.randbytes(200), b"\x16\x03\x01\x02\x00\x01\x00", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.0\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b" \r\n" * 100, b"GET /\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"{}\r\n\r\n",
    ))  # fmt: skip
    return Hostile("no request", data, complete=False)


KINDS: tuple[Callable[[random.Random], Hostile], ...] = (
    random_bytes, broken_json, deep_json, odd_numbers, wrong_types, odd_texts, many_filters, nearly_right,
    right_addresses, odd_queries, odd_paths,
    odd_headers, odd_framing, no_request,
)  # fmt: skip
