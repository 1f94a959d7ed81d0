"""A span for every question, in the trace that the page or another caller has begun."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serving.tracing import spans


class Traced:
    """ASGI middleware, for where tracing is on. What was asked is in no span: the route stands for the address."""

    def __init__(self, app: ASGIApp):
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith("/v1/"):  # probes ask every second
            await self._app(scope, receive, send)
            return
        header = spans.HEADER.encode()
        given = next((value.decode("latin-1") for name, value in scope["headers"] if name == header), None)
        with spans.span(scope["method"], parent=given, kind="SERVER") as span:

            async def noting(message: Message) -> None:
                if message["type"] == "http.response.start":
                    spans.note(**{"http.response.status_code": message["status"]})
                await send(message)

            try:
                await self._app(scope, receive, noting)
            finally:
                route = getattr(scope.get("route"), "path", None) or "other"
                spans.note(**{"http.request.method": scope["method"], "http.route": route})
                if span is not None:
                    span.update_name(f"{scope['method']} {route}")
