"""The names the service answers to. A page elsewhere whose own name is made to point at this machine (DNS rebinding)
reaches the port with a visitor's browser, but with its own name in the Host header."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from starlette.types import ASGIApp, Receive, Scope, Send

from common.errors import InputError
from common.hosts import parsed
from search.problems import problem

ANY = "*"
LONGEST = 260  # bytes: a name and a port
_NAME = re.compile(r"[\w.-]{1,253}", re.ASCII)
_HOST = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]{2,45})\]|(?P<name>[\w.-]{1,253}))(?::\d{0,5})?", re.ASCII)


class Hosts:
    """Starlette's TrustedHostMiddleware does not say what to set, and knows one spelling of an address."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str], any_address: bool):
        """`any_address`: whatever address stands in the header, since a rebound one has a name."""
        self._app, self._any_address = app, any_address
        self._hosts = frozenset(canonical(host) for host in hosts)
        self._any = ANY in self._hosts
        self._known = lru_cache(1024)(self._judge)  # few names come again and again

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._any and not self._ours(scope):
            told = "This service does not answer to the name in the request's Host header."
            fix = "Whoever runs it names the hosts it has with `python -m search --hosts NAME,...`."
            await problem(421, told, fix)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _ours(self, scope: Scope) -> bool:
        given = [value for name, value in scope["headers"] if name == b"host"]
        return len(given) == 1 and len(given[0]) <= LONGEST and self._known(given[0])

    def _judge(self, given: bytes) -> bool:
        match = _HOST.fullmatch(given.decode("latin-1"))
        if match is None:
            return False
        host = canonical(match["six"] or match["name"])
        return host in self._hosts or (self._any_address and parsed(host) is not None)


def canonical(host: str) -> str:
    """One spelling of an address, with or without brackets; a name in small letters, without the root's dot."""
    bare = host.strip().removeprefix("[").removesuffix("]")
    return str(parsed(bare) or bare.lower().removesuffix("."))


def named(given: str) -> tuple[str, ...]:
    """Of a flag: names and addresses without ports, or * for whatever comes."""
    hosts = tuple(canonical(part) for part in given.split(","))
    for host in hosts:
        if host != ANY and not _NAME.fullmatch(host) and parsed(host) is None:
            raise InputError(f"--hosts takes names or addresses without ports, or * for any; got {host!r}")
    return hosts
