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

from elastic_transport import HttpHeaders, Transport, TransportApiResponse
from elasticsearch import Elasticsearch, OrjsonSerializer

from index.elastic.backend import PORT
from index.errors import IndexUnusable
from serving.tracing import spans

REQUEST_SECONDS = 60.0
API_KEY, USER, PASSWORD, AUTHORITY = "PAUSE_ES_API_KEY", "PAUSE_ES_USER", "PAUSE_ES_PASSWORD", "PAUSE_ES_CA"
API_KEY_FILE, PASSWORD_FILE = "PAUSE_ES_API_KEY_FILE", "PAUSE_ES_PASSWORD_FILE"
ADVICE = f"set {API_KEY}, or {USER} and {PASSWORD}"
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
        servers, _, path = rest.partition("/")
        prefix, _, alias = path.strip("/").rpartition("/")
        if "@" in servers:
            raise IndexUnusable(f"{scheme}://…@{servers.rpartition('@')[2]} has a password in it; {ADVICE} instead")
        if not _ALIAS.fullmatch(alias):
            raise IndexUnusable(
                f"{url} names no index: give http(s)://host:9200/alias, the alias in a-z, 0-9, '.', '_' and '-'"
            )
        try:
            hosts = tuple(_host(scheme, server, prefix) for server in servers.split(","))
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


def _host(scheme: str, server: str, prefix: str) -> str:
    parts = urlsplit(f"{scheme}://{server}")
    if not parts.hostname or parts.query or parts.fragment:
        raise ValueError(f"{server!r} is not host:port")
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{scheme}://{name}:{parts.port or PORT}{f'/{prefix}' if prefix else ''}"


@dataclass(frozen=True)
class Credentials:
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
            raise IndexUnusable(f"{USER} and {PASSWORD} (or {PASSWORD_FILE}) go together; one of them is not set")
        if self.authority and not Path(self.authority).is_file():
            raise IndexUnusable(f"PAUSE_ES_CA names {self.authority!r}, which is not a file of PEM certificates")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Credentials:
        key, password = _secret(API_KEY, API_KEY_FILE, environment), _secret(PASSWORD, PASSWORD_FILE, environment)
        user, authority = (environment.get(name, "") for name in (USER, AUTHORITY))
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


def _secret(name: str, file_name: str, environment: Mapping[str, str]) -> str:
    """Itself, or what the file that is named holds: containers get secrets as files, since whoever may inspect one
    sees its environment."""
    given, file = environment.get(name, ""), environment.get(file_name, "")
    if not file:
        return given
    if given:
        raise IndexUnusable(f"{name} and {file_name} are both set; keep one of them")
    try:
        secret = Path(file).read_text(encoding="utf-8").strip()  # editors and `echo` end a file with a new line
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text in UTF-8"
        raise IndexUnusable(f"{file_name} names {file!r}, which cannot be read: {reason}") from error
    if not secret or len(secret.splitlines()) > 1:
        raise IndexUnusable(f"{file_name} names {file!r}, which must hold the secret in one line and nothing else")
    return secret


def connect(address: Address, credentials: Credentials, seconds: float = REQUEST_SECONDS) -> Elasticsearch:
    """Nothing is sent yet. The client never tries again by itself: it would do so at once, without a pause.
    Nor does it follow a redirect, which could take the key elsewhere."""
    credentials.require_privacy(address)
    options: dict[str, Any] = {}
    if credentials.authority and address.hosts[0].startswith("https:"):
        options["ssl_context"] = ssl.create_default_context(cafile=credentials.authority)
    if spans.is_on():
        options["transport_class"] = _TracedTransport
    return Elasticsearch(
        list(address.hosts),
        api_key=credentials.api_key or None,
        basic_auth=(credentials.user, credentials.password) if credentials.user else None,
        request_timeout=seconds,
        max_retries=0,
        retry_on_status=(),
        serializers={_JSON: OrjsonSerializer()},  # takes a tenth of the time for a vector of numbers
        **options,
    )


class _TracedTransport(Transport):
    """The client has a span for each request, by itself; the server is told of it here."""

    def perform_request(self, method: str, target: str, **options: Any) -> TransportApiResponse:
        headers, here = HttpHeaders(options.pop("headers", None) or {}), spans.traceparent()
        if here:
            headers[spans.HEADER] = here
        return super().perform_request(method, target, headers=headers, **options)
