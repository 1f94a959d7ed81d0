"""Which hosts are this machine: by how they are written alone, or by what they resolve to."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address


def parsed(host: str) -> IPv4Address | IPv6Address | None:
    """The address, or None for a name; an IPv4 address written as IPv6 (::ffff:192.0.2.1) is IPv4."""
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def is_local(host: str) -> bool:
    """Whether nobody but this machine reaches what listens there, without asking a name server: a name other than
    localhost may mean any machine tomorrow."""
    address = parsed(host)
    return host.lower() == "localhost" or (address is not None and address.is_loopback)


def is_loopback(host: str) -> bool:
    """Whether all addresses that a host resolves to are this machine's own."""
    try:
        found = {str(address[0]) for *_, address in socket.getaddrinfo(host, None)} if host else set()
        return bool(found) and all(ip_address(one.partition("%")[0]).is_loopback for one in found)
    except (OSError, ValueError):
        return False
