"""Who may come in: key and scope, rate, size of the body. The page and the health are for everybody."""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from search.feedback import ANONYMOUS
from search.keys import FEEDBACK, READ, Caller, Keys
from search.limits import CALLERS, READ_ON, Buckets, read_body, replayed
from search.problems import problem
from search.secret import Secret
from search.settings import Settings

GUARDED = "/v1/"
FEEDBACK_PATH = "/v1/feedback"


class Gate:
    def __init__(self, app: ASGIApp, settings: Settings, secret: Secret):
        self._app, self._body_bytes = app, settings.body_bytes
        self._hidden = secret.key("addresses")
        self._keys = Keys(Path(settings.keys)) if settings.keys else None
        self._buckets = Buckets(settings.rate, settings.burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(GUARDED):
            await self._app(scope, receive, send)
            return
        admitted = self._admit(scope)
        if isinstance(admitted, Response):
            await admitted(scope, receive, send)
            return
        scope.setdefault("state", {})["caller"] = admitted
        declared = Headers(scope=scope).get("content-length", "")
        body = None
        if not declared.isdecimal() or int(declared) <= READ_ON:
            body = await read_body(receive, self._body_bytes)
        if body is None:
            await problem(413, f"The body has more than {self._body_bytes} bytes.")(scope, receive, send)
            return
        await self._app(scope, replayed(body, receive), send)

    def _admit(self, scope: Scope) -> Caller | Response:
        address = _nameless(scope, self._hidden)
        caller, refusal = self._caller(scope, address)
        # Who has no good key is counted by address, or keys could be tried out without end.
        seconds = self._buckets.take(caller.name if caller else address)
        if seconds:
            busy = problem(429, "That was more than one caller may ask at once.", f"Wait {seconds} s.")
            busy.headers["Retry-After"] = str(seconds)
            return busy
        if refusal is not None:
            return refusal
        assert caller is not None  # one of the two there always is
        return caller

    def _caller(self, scope: Scope, address: str) -> tuple[Caller | None, Response | None]:
        if self._keys is None:
            return Caller(address), None
        scheme, _, key = Headers(scope=scope).get("authorization", "").partition(" ")
        caller = self._keys.caller(key.strip()) if scheme.lower() == "bearer" and key else None
        if caller is None:
            told = "This API key is not known." if key else "An API key is needed."
            refusal = problem(401, told, "Send it as `Authorization: Bearer KEY`.")
            refusal.headers["WWW-Authenticate"] = "Bearer"
            return None, refusal
        needed = FEEDBACK if scope["path"] == FEEDBACK_PATH else READ
        if needed not in caller.scopes:
            return caller, problem(403, f"This API key is not good for {needed}.", "Ask for one with that scope.")
        return caller, None


def _nameless(scope: Scope, key: bytes) -> str:
    """An address as a name that tells it apart from others. Without the key nobody finds the address by trying all."""
    host = scope["client"][0] if scope.get("client") else ""
    return ANONYMOUS + blake2b(_household(host).encode(), key=key, digest_size=6).hexdigest()


@lru_cache(CALLERS)
def _household(host: str) -> str:
    """What one caller has to itself: an address of IPv4, the 64 bits of an IPv6 network, any other name as it is."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address):
        mapped = address.ipv4_mapped
        return str(mapped) if mapped else f"{int(address) >> 64:016x}/64"
    return str(address)
