"""How a worker reaches the endpoint and the index: what of it may be in a job's description, and the secrets apart."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from index.base import Index, Spec
from index.open import open_index
from model.contract import Contract
from model.errors import InputError
from pipelines.own_server import OwnServer
from serving.channel import TlsFiles
from serving.client import EmbeddingClient

CA, CERTIFICATE, KEY = "PAUSE_SERVING_CA", "PAUSE_SERVING_CERTIFICATE", "PAUSE_SERVING_KEY"

_opened: dict[str, Index] = {}
_opening = threading.Lock()


@dataclass(frozen=True)
class Services:
    """Pickled into the job: no secret may be in here, only where the worker finds it."""

    serving: tuple[str, ...] | OwnServer
    index_url: str
    contract: Contract
    secrets: Mapping[str, str] = field(default_factory=dict)  # environment variable: its name in Secret Manager
    deadline: float = 300.0

    def client(self) -> EmbeddingClient:
        provide(self.secrets)
        addresses = (self.serving.address(),) if isinstance(self.serving, OwnServer) else self.serving
        return connect(addresses, self.deadline)

    def index(self) -> Index:
        """One for all threads of the process: what one of them puts off while loading, all must."""
        provide(self.secrets)
        with _opening:
            if self.index_url not in _opened:
                _opened[self.index_url] = open_index(self.index_url)
            return _opened[self.index_url]

    def created_index(self) -> Index:
        """Made where there is none; raises where it is that of another model."""
        with _opening:
            spec = Spec(self.contract.fingerprint, self.contract.dimension)
            _opened[self.index_url] = open_index(self.index_url, create=spec)
            return _opened[self.index_url]


class Connection:
    """A client of the endpoint, from the first text on and for all threads: many a run has none to encode."""

    def __init__(self, services: Services):
        self._services = services
        self._client: EmbeddingClient | None = None
        self._connecting = threading.Lock()

    def __call__(self) -> EmbeddingClient:
        with self._connecting:
            self._client = self._client or self._services.client()
            return self._client

    def close(self) -> None:
        if self._client:
            self._client.close()


def connect(addresses: tuple[str, ...], deadline: float) -> EmbeddingClient:
    files = {name: os.environ.get(name) for name in (CA, CERTIFICATE, KEY)}
    tls = TlsFiles(files[CA], files[CERTIFICATE], files[KEY]) if any(files.values()) else None
    return EmbeddingClient(addresses, deadline=deadline, tls=tls)


def provide(secrets: Mapping[str, str]) -> None:
    """Puts what the secret manager keeps where the clients look, unless it is there already."""
    missing = {name: secret for name, secret in secrets.items() if name not in os.environ}
    if not missing:
        return
    from google.cloud import secretmanager

    client = secretmanager.SecretManagerServiceClient()
    for name, secret in missing.items():
        try:
            os.environ[name] = client.access_secret_version(name=secret).payload.data.decode()
        except Exception as error:  # whatever the library raises, the secret's name is what a person needs
            raise InputError(f"secret {secret} for {name} cannot be read: {' '.join(str(error).split())}") from error
