"""Ports of this machine: one that flags name, or any that is free."""

from __future__ import annotations

import socket

from common.errors import InputError


def listen(flag: str, host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        reason = str(error.strerror).partition(" (while")[0]  # the address stands in the line already
        raise InputError(f"{flag} {port} cannot be listened on at --host {host}: {reason}") from error


def free_port() -> int:
    """One that nobody listens on in this moment, for a program that must be told its port before it starts."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])
