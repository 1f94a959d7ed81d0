"""Authentication and limits, before a route is called: key and scope, rate, size and pace of the body.

What routes declare public is for everybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from search.access.addresses import network
from search.access.limits import READ_ON, TokenBuckets, TooSlow, read_body, replayed
from search.access.scopes import PUBLIC, Access, Declared
from search.access.secret import Secret
from search.feedback.store import ANONYMOUS
from search.keys import Caller, Keys, KeysLocked
from search.problems import problem
from search.settings import Settings


class Auth:
    """ASGI middleware that names the caller, or responds with a problem itself."""

    def __init__(self, app: ASGIApp, settings: Settings, secret: Secret, routes: Sequence[BaseRoute]):
        self._app, self._settings = app, settings
        self._declared = Declared(routes)
        self._hidden = secret.key("addresses")
        self._keys = Keys(Path(settings.keys)) if settings.keys else None
        self._buckets = TokenBuckets(settings.rate, settings.burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # no route of ours is a WebSocket
            await send({"type": "websocket.close", "code": 1008, "reason": ""})
            return
        there, access = self._declared.asked(scope)
        if not there:
            await problem(404, "There is nothing at this address.")(scope, receive, send)
        elif access is None:
            await problem(403, "This address is open to nobody.")(scope, receive, send)
        elif access == PUBLIC:
            await self._app(scope, receive, send)
        else:
            await self._guarded(access, scope, receive, send)

    async def _guarded(self, access: Access, scope: Scope, receive: Receive, send: Send) -> None:
        admitted = self._admit(access, scope)
        if isinstance(admitted, Response):
            await admitted(scope, receive, send)
            return
        scope.setdefault("state", {})["caller"] = admitted
        body = await self._body(scope, receive)
        if isinstance(body, Response):
            await body(scope, receive, send)
            return
        await self._app(scope, replayed(body, receive), send)

    async def _body(self, scope: Scope, receive: Receive) -> bytes | Response:
        headers = Headers(scope=scope)
        declared = headers.get("content-length", "")
        if not declared and "transfer-encoding" not in headers:
            return b""  # nothing is to come
        body, limit, seconds = None, self._settings.body_bytes, self._settings.body_seconds
        if not declared.isdecimal() or int(declared) <= READ_ON:
            try:
                body = await read_body(receive, limit, seconds)
            except TooSlow:
                late = problem(408, f"The body was not there within {seconds:g} s.")
                late.headers["Connection"] = "close"  # or the rest of it would be read as the next request
                return late
        return problem(413, f"The body has more than {limit} bytes.") if body is None else body

    def _admit(self, access: Access, scope: Scope) -> Caller | Response:
        came_from = network(_host(scope))
        address = _nameless(came_from, self._hidden)
        caller, refusal = self._caller(access, scope, address)
        # Who has no good key is counted by address, or keys could be tried out without end. No key's name has a blank.
        keyed = caller is not None and self._keys is not None
        counted = caller.name if caller and keyed else f"address {came_from}"
        seconds = self._buckets.take(counted)
        if seconds:
            busy = problem(429, "That was more than one caller may ask at once.", f"Wait {seconds} s.")
            busy.headers["Retry-After"] = str(seconds)
            return busy
        if refusal is not None:
            return refusal
        assert caller is not None  # one of the two there always is
        return caller

    def _caller(self, access: Access, scope: Scope, address: str) -> tuple[Caller | None, Response | None]:
        if self._keys is None:
            return Caller(address), None
        scheme, _, key = Headers(scope=scope).get("authorization", "").partition(" ")
        try:
            caller = self._keys.caller(key.strip()) if scheme.lower() == "bearer" and key else None
        except KeysLocked as locked:
            fix = "Whoever runs the service finds the reason in its log; a file put right is followed at once."
            return None, problem(503, f"No key is taken for now: {locked}.", fix, "keys_locked")
        if caller is None:
            told = "This API key is not known." if key else "An API key is needed."
            refusal = problem(401, told, "Send it as `Authorization: Bearer KEY`.")
            refusal.headers["WWW-Authenticate"] = "Bearer"
            return None, refusal
        if access not in caller.scopes:
            return caller, problem(403, f"This API key is not good for {access}.", "Ask for one with that scope.")
        return caller, None


def _host(scope: Scope) -> str:
    return scope["client"][0] if scope.get("client") else ""


def _nameless(came_from: str, key: bytes) -> str:
    """A name that tells it apart from others. Without the key nobody finds the address by trying all."""
    return ANONYMOUS + blake2b(came_from.encode(), key=key, digest_size=6).hexdigest()
