"""Listening at an address and a port that flags name."""

from __future__ import annotations

import ipaddress
import socket

from model.errors import InputError


def listen(flag: str, host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        reason = str(error.strerror).partition(" (while")[0]  # the address stands in the line already
        raise InputError(f"{flag} {port} cannot be listened on at --host {host}: {reason}") from error


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches it; a name does where all of its addresses do."""
    try:
        found = {str(address[0]) for *_, address in socket.getaddrinfo(host, None)} if host else set()
        return bool(found) and all(ipaddress.ip_address(one.partition("%")[0]).is_loopback for one in found)
    except (OSError, ValueError):
        return False
