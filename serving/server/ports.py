"""Listening on a port that a flag names."""

from __future__ import annotations

import socket

from model.errors import InputError


def listen(flag: str, host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        reason = str(error.strerror).partition(" (while")[0]  # the address stands in the line already
        raise InputError(f"{flag} {port} cannot be listened on at --host {host}: {reason}") from error
