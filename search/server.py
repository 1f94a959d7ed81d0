"""The web server around the application: its limits, whom it believes, and TLS."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from common.errors import InputError
from search.access.connections import ConnectionLimits, connection_class

SHUTDOWN_SECONDS = 30  # longer than any question takes


@dataclass(frozen=True)
class Tls:
    """PEM files of the server."""

    certificate: Path
    key: Path

    def __post_init__(self) -> None:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.certificate, self.key, password=_no_password)
        except (OSError, ssl.SSLError, ValueError) as error:
            said = getattr(error, "strerror", None) or error
            raise InputError(f"--tls_certificate {self.certificate} and --tls_key {self.key}: {said}") from error


def server_config(
    app: FastAPI,
    limits: ConnectionLimits | None = None,
    proxies: Sequence[str] = (),
    tls: Tls | None = None,
) -> uvicorn.Config:
    """`proxies` are believed about who asks and how; nobody else is."""
    limits = limits or ConnectionLimits()
    return uvicorn.Config(
        app,
        http=connection_class(limits),
        ws="none",  # no route takes one, and an upgraded connection would be out of bounds
        timeout_keep_alive=limits.idle_seconds,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        log_level="warning",
        access_log=False,  # it would write down what people look for
        server_header=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
        ssl_certfile=tls.certificate if tls else None,
        ssl_keyfile=tls.key if tls else None,
    )


def _no_password() -> str:
    raise ValueError("the key has a password; give one without, readable by the service alone")
