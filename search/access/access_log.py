"""Times every request, writes its line to the log, and turns an unhandled exception into a 500."""

from __future__ import annotations

import logging
import time
import traceback

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from search.metrics import Metrics
from search.problems import problem

log = logging.getLogger(__name__)


class AccessLog:
    """ASGI middleware. No query text in logs unless told so: the route's pattern stands for the address."""

    def __init__(self, app: ASGIApp, metrics: Metrics, log_queries: bool):
        self._app, self._metrics, self._log_queries = app, metrics, log_queries

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.monotonic(), 0

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noting)
        except Exception as error:
            self._failed(error)
            if status:  # half an answer is out: only breaking off tells the caller
                raise
            await problem(500, "The server made a mistake; its log says where.")(scope, receive, noting)
        finally:
            self._note(scope, status, time.monotonic() - began)

    def _failed(self, error: Exception) -> None:
        # A message may quote what was asked; the frames do not.
        said = f": {error}" if self._log_queries else ""
        frames = "".join(traceback.format_tb(error.__traceback__))
        log.error("%s%s\n%s", type(error).__name__, said, frames)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", None) or "other"
        self._metrics.requested(route, status, seconds)
        noted = scope.get("state", {})
        who = noted["caller"].name if "caller" in noted else "-"
        query = scope["query_string"].decode("latin-1")
        asked = f" {query} {noted.get('asked')!r}" if self._log_queries else ""
        log.info("%s %s %d %.1f ms %s%s", scope["method"], route, status, seconds * 1e3, who, asked)
