"""How long a connection may take and how much it may send before the application hears of it. uvicorn bounds neither
headers nor their time, so that a handful of clients that send a byte now and then could hold every connection."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from search.problems import problem


@dataclass(frozen=True)
class ConnectionLimits:
    """Bounds of one connection, in seconds and bytes, and of their number."""

    connections: int = 500  # at once: well below the 1,024 files that a process may have open on most machines
    header_seconds: float = 10.0  # from a connection's start, or a request's first byte, to the end of its headers
    idle_seconds: int = 5  # between two requests
    write_seconds: float = 30.0  # for a client to take what it asked for
    header_bytes: int = 64 * 1024  # with the address, which holds the filters of a question
    linger_seconds: float = 2.0  # for the last words to a client that is cut off


class Connection(HttpToolsProtocol):
    """uvicorn's protocol with those bounds."""

    limits = ConnectionLimits()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._heading = False  # between a request's first byte and the end of its headers
        self._parsed = self._raw = 0  # bytes of its headers: of whole ones, and of whole packets
        self._deadline: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None
        self._lingering: asyncio.TimerHandle | None = None
        if len(self.connections) > self.limits.connections:
            self._refuse(503, "The service has as many connections as it can take.", "busy")
        else:
            self._hurry()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._deadline, self._writing, self._lingering):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        heading = self._heading
        super().data_received(data)
        if self.transport.is_closing():
            return
        if heading and self._heading:
            self._raw += len(data)
            if self._raw > self.limits.header_bytes:
                self._too_large()
                return
        # Not every byte begins a request: blank lines, or a body that was answered before it was there, count as well.
        answered = self.cycle is not None and self.cycle.response_complete and self.timeout_keep_alive_task is None
        if self._deadline is None and (self._heading or answered):
            self._hurry()

    def _unsupported_upgrade_warning(self) -> None:
        """Nothing is missing: there is nothing here to upgrade to."""

    # Parser callbacks

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._heading, self._parsed, self._raw = True, 0, 0

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value) + len(b": \r\n"))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._heading = False
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        super().on_headers_complete()

    def _count(self, size: int) -> None:
        self._parsed += size
        if self._parsed > self.limits.header_bytes:
            raise ValueError("headers too large")  # the parser stops, and a 400 is sent: see below

    def send_400_response(self, msg: str) -> None:
        if self._parsed > self.limits.header_bytes:
            self._too_large()
        else:
            super().send_400_response(msg)

    # Clients that do not take what they asked for

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._writing is None:
            self._writing = self.loop.call_later(self.limits.write_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def timeout_keep_alive_handler(self) -> None:
        if not self.transport.is_closing():
            self._end()

    # Ends

    def _hurry(self) -> None:
        self._deadline = self.loop.call_later(self.limits.header_seconds, self._late)

    def _late(self) -> None:
        self._deadline = None
        if self.transport.is_closing():
            return
        if self.cycle is not None and not self.cycle.response_complete:  # a second word in the midst of an answer
            self.transport.abort()
        elif self._heading:
            self._refuse(408, f"The headers were not there within {self.limits.header_seconds:g} s.")
        else:
            self._end()

    def _too_large(self) -> None:
        self._refuse(431, f"The headers have more than {self.limits.header_bytes} bytes.", "too_large")

    def _refuse(self, status: int, message: str, code: str | None = None) -> None:
        response = problem(status, message, code=code)
        headers = b"".join(name + b": " + value + b"\r\n" for name, value in response.raw_headers)
        self.transport.write(STATUS_LINE[status] + headers + b"connection: close\r\n\r\n" + bytes(response.body))
        self._end()

    def _end(self) -> None:
        """Closing waits until all that was written is taken, for ever if need be; that is not waited for."""
        self.transport.close()
        self._lingering = self.loop.call_later(self.limits.linger_seconds, self.transport.abort)


def connection_class(limits: ConnectionLimits) -> type[Connection]:
    """uvicorn makes the connections, and has nothing to hand to them."""
    return type("LimitedConnection", (Connection,), {"limits": limits})
