"""How a worker reaches the endpoint and the index: what of that stands in a job's description, the secrets apart,
and what it has open."""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from common.errors import InputError
from index.base import Index, Spec
from index.errors import IndexMissing, WrongModel
from index.open import open_index
from model.contract import Contract
from serving.client import EmbeddingClient
from serving.endpoint.channel import ModelNotServed
from serving.endpoint.connection import TlsFiles
from serving.own_server import OwnServer

CA, CERTIFICATE, KEY = "PAUSE_SERVING_CA", "PAUSE_SERVING_CERTIFICATE", "PAUSE_SERVING_KEY"
# What says that a batch was made for a model that is not the index's any more, or not served.
MOVED = (WrongModel, ModelNotServed)
FIRST_WAIT, LONGEST_WAIT = 0.05, 1.0  # seconds; messages get no older than they must

Made = TypeVar("Made")

_opened: dict[str, Index] = {}
_opening = threading.Lock()
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Services:
    """Pickled into the job: no secret may be in here, only where the worker finds it."""

    serving: tuple[str, ...] | OwnServer
    index_url: str
    contract: Contract  # of the newest model when the job began: that of an index made by it
    secrets: Mapping[str, str] = field(default_factory=dict)  # environment variable: its name in Secret Manager
    deadline: float = 300.0
    force: bool = False  # an equal version is written again
    tracing: Mapping[str, str] = field(default_factory=dict)  # environment variables, for the workers

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
        """Made for the newest model where there is none; WrongModel where its model is not served, newest or not."""
        with _opening:
            try:
                index = open_index(self.index_url)
            except IndexMissing:
                index = open_index(self.index_url, create=Spec(self.contract.fingerprint, self.contract.dimension))
            _opened[self.index_url] = index
        model = index.spec().model
        with closing(Session(self)) as session:
            try:
                session.contract(model)
            except ModelNotServed as error:
                raise WrongModel(self.index_url, model, self.contract.fingerprint) from error
        return index


class Session:
    """What a worker has open, for all its threads: index and endpoint, from the first batch on that needs them (many a
    run has nothing to encode), and the contract of the live index's model. Models are published and indices moved while
    a job runs; so that contract is asked for again, but only when something was refused: a write says so."""

    def __init__(self, services: Services):
        self.services = services
        self._client: EmbeddingClient | None = None
        self._connecting = threading.Lock()
        self._live: Contract | None = None
        self._closed = threading.Event()

    @cached_property
    def index(self) -> Index:
        return self.services.index()

    def client(self) -> EmbeddingClient:
        with self._connecting:
            self._client = self._client or self.services.client()
            return self._client

    def contract(self, model: str) -> Contract:
        """What the model with this fingerprint promises; ModelNotServed where it is gone."""
        newest, serving = self.services.contract, self.services.serving
        if model == newest.fingerprint:
            return newest
        return serving.contract(model) if isinstance(serving, OwnServer) else self.client().contract(model)

    def by_live_model(self, work: Callable[[Contract], Made], for_ever: bool = False) -> Made:
        """What `work` makes by the contract of the live index's model; again, by the one found then, where that moved.

        Between the publishing of a model and the index's move to it a server may have let go of the index's model:
        that is waited for within the deadline, or until this is closed.
        """
        began, wait = time.monotonic(), FIRST_WAIT
        while True:
            contract = self._live
            try:
                if contract is None:
                    self._live = contract = self.contract(self.index.spec().model)
                return work(contract)
            except MOVED as error:
                if self._live is contract:  # else another thread has asked already
                    self._live = None
                pause, waited = wait * random.uniform(0.5, 1.5), time.monotonic() - began
                if not for_ever:
                    # The last try is made at the deadline, not before.
                    pause = min(pause, self.services.deadline - waited)
                if pause <= 0 or self._ends(pause):
                    raise
                if wait >= LONGEST_WAIT:
                    log.warning("a batch waits since %.0f s: %s", waited, error)
                wait = min(2 * wait, LONGEST_WAIT)

    def close(self) -> None:
        """Ends what waits, too."""
        self._closed.set()
        if self._client:
            self._client.close()

    def _ends(self, pause: float) -> bool:
        """Waits. A program that ends waits for its threads, and closes nothing before."""
        return self._closed.wait(pause) or not threading.main_thread().is_alive()


def forget(index_url: str) -> None:
    """Whoever asks for that index next opens it anew."""
    with _opening:
        _opened.pop(index_url, None)


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
