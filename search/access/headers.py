"""Security headers of every response: a browser runs and loads our own files only, and shows us in no frame."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",  # the address bar holds what was asked
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
YEAR = 31_536_000


class SecurityHeaders:
    """ASGI middleware that adds them to every response."""

    def __init__(self, app: ASGIApp):
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                # Answers are of the moment; files are asked for again, and are seldom sent again.
                headers["Cache-Control"] = "no-store" if scope["path"].startswith("/v1/") else "no-cache"
                if scope.get("scheme") == "https":
                    headers["Strict-Transport-Security"] = f"max-age={YEAR}"
            await send(message)

        await self._app(scope, receive, send_with_headers if scope["type"] == "http" else send)
