"""Addresses of callers and proxies, however they are written."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_network

from common.errors import InputError
from common.hosts import parsed

LOCAL = ("localhost", "127.0.0.1", "::1")
HOME = 64  # bits of an IPv6 address that name a network: whoever has one of its addresses has all of them


@lru_cache(10_000)
def network(host: str) -> str:
    """What callers are counted by: an IPv4 address, the /64 of an IPv6 one; what is no address stands for itself."""
    address = parsed(host)
    if isinstance(address, IPv6Address):
        return str(IPv6Network((int(address) >> HOME << HOME, HOME)))
    return str(address or host)


def proxies(given: str) -> list[str]:
    """Addresses and networks, each IPv4 one as a socket for both families names it, too."""
    found: list[str] = []
    for one in given.split(","):
        try:
            named = ip_network(one.strip())
        except ValueError as error:
            raise InputError(f"--proxy takes addresses or networks, 10.0.0.7,10.1.0.0/16 say; got {one!r}") from error
        found.append(str(named))
        if isinstance(named, IPv4Network):
            found.append(f"::ffff:{named.network_address}/{96 + named.prefixlen}")
    return found
