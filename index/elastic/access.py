"""From an address and the environment to a client of Elasticsearch. Secrets are never part of an address: those are
shown in logs, consoles and error messages."""

from __future__ import annotations

import ipaddress
import os
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from elasticsearch import Elasticsearch, OrjsonSerializer

from index.errors import IndexUnusable

PORT = 9200
REQUEST_SECONDS = 60.0
ADVICE = "set PAUSE_ES_API_KEY, or PAUSE_ES_USER and PAUSE_ES_PASSWORD"
ALLOW_PLAIN_HTTP = "PAUSE_ES_ALLOW_PLAIN_HTTP"
_JSON = "application/vnd.elasticsearch+json"  # as the client names what it sends and takes
# What Elasticsearch takes as a name, less what our own ending needs.
_ALIAS = re.compile(r"[a-z0-9][a-z0-9._-]{0,199}")


@dataclass(frozen=True)
class Address:
    """`https://one:9200,two:9200/alias`; a path before the alias is that of a proxy."""

    hosts: tuple[str, ...]
    alias: str

    @classmethod
    def parse(cls, url: str) -> Address:
        scheme, _, rest = url.partition("://")
        places, _, path = rest.partition("/")
        prefix, _, alias = path.strip("/").rpartition("/")
        if "@" in places:
            raise IndexUnusable(f"{scheme}://…@{places.rpartition('@')[2]} has a password in it; {ADVICE} instead")
        if not _ALIAS.fullmatch(alias):
            raise IndexUnusable(
                f"{url} names no index: give http(s)://host:9200/alias, the alias in a-z, 0-9, '.', '_' and '-'"
            )
        try:
            hosts = tuple(_host(scheme, place, prefix) for place in places.split(","))
        except ValueError as error:
            raise IndexUnusable(f"{url} is not the address of an index: {error}") from error
        return cls(hosts, alias)

    def exposed(self) -> str | None:
        """The first host, if any, to which a request goes over a network that others may read."""
        return next((host for host in self.hosts if host.startswith("http:") and not _is_loopback(host)), None)


def _is_loopback(host: str) -> bool:
    name = urlsplit(host).hostname or ""
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:  # a name, and only one never leaves the machine
        return name == "localhost"


def _host(scheme: str, place: str, prefix: str) -> str:
    parts = urlsplit(f"{scheme}://{place}")
    if not parts.hostname or parts.query or parts.fragment:
        raise ValueError(f"{place!r} is not host:port")
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{scheme}://{name}:{parts.port or PORT}{f'/{prefix}' if prefix else ''}"


@dataclass(frozen=True)
class Access:
    """Who asks, and which authority to believe."""

    api_key: str = field(default="", repr=False)
    user: str = ""
    password: str = field(default="", repr=False)
    authority: str = ""  # PEM file
    plain_http: bool = False  # the key or password may go to another machine unencrypted

    def __post_init__(self) -> None:
        if self.api_key and self.user:
            raise IndexUnusable("PAUSE_ES_API_KEY and PAUSE_ES_USER are both set; keep one of them")
        if bool(self.user) != bool(self.password):
            raise IndexUnusable("PAUSE_ES_USER and PAUSE_ES_PASSWORD go together; one of them is not set")
        if self.authority and not Path(self.authority).is_file():
            raise IndexUnusable(f"PAUSE_ES_CA names {self.authority!r}, which is not a file of PEM certificates")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Access:
        names = ("PAUSE_ES_API_KEY", "PAUSE_ES_USER", "PAUSE_ES_PASSWORD", "PAUSE_ES_CA")
        key, user, password, authority = (environment.get(name, "") for name in names)
        return cls(key, user, password, authority, plain_http=environment.get(ALLOW_PLAIN_HTTP) == "1")

    def require_privacy(self, address: Address) -> None:
        """Whoever listens between here and there would have the key from the first request on."""
        exposed = address.exposed() if (self.api_key or self.user) and not self.plain_http else None
        if exposed:
            secret = "PAUSE_ES_API_KEY" if self.api_key else "PAUSE_ES_PASSWORD"
            raise IndexUnusable(
                f"{secret} would be sent to {exposed} unencrypted: give an https:// address, "
                f"or set {ALLOW_PLAIN_HTTP}=1 where nobody else is on that network"
            )


def connect(address: Address, access: Access, seconds: float = REQUEST_SECONDS) -> Elasticsearch:
    """Nothing is sent yet. The client never tries again by itself: it would do so at once, without a pause.
    Nor does it follow a redirect, which could take the key elsewhere."""
    access.require_privacy(address)
    options: dict[str, Any] = {}
    if access.authority and address.hosts[0].startswith("https:"):
        options["ssl_context"] = ssl.create_default_context(cafile=access.authority)
    return Elasticsearch(
        list(address.hosts),
        api_key=access.api_key or None,
        basic_auth=(access.user, access.password) if access.user else None,
        request_timeout=seconds,
        max_retries=0,
        retry_on_status=(),
        serializers={_JSON: OrjsonSerializer()},  # takes a tenth of the time for a vector of numbers
        **options,
    )
