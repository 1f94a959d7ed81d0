"""The versions of one model: found under its base path, loaded and proven beside the live one, then swapped."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
from tensorflow_serving.config import model_server_config_pb2

from model.errors import ExportError
from serving.server.api.status import Failure
from serving.server.config.names import folder_of
from serving.server.metrics import Metrics
from serving.server.models.loaded import LoadedModel
from serving.server.models.loading import Dropped, Loader, Loading
from serving.server.models.version import OK, Version, VersionStatus
from serving.storage.base import File, StorageError
from serving.storage.open import open_base

log = logging.getLogger(__name__)


class Versions:
    """Keeps the newest good versions loaded. `refresh` is for one thread at a time; all else is for any."""

    def __init__(self, config: model_server_config_pb2.ModelConfig, loading: Loading, metrics: Metrics, scratch: Path):
        self.config = config
        self._base = open_base(config.base_path)
        self._loading, self._metrics = loading, metrics
        self._copies = folder_of(config.name, scratch)
        self._loader = Loader(self._base, loading, self._copies)
        self._versions: dict[int, Version] = {}
        self.trouble = ""  # why the base path could not be looked through the last time
        self._lock = threading.Lock()

    @property
    def base_path(self) -> str:
        return str(self.config.base_path)

    def found(self) -> list[int]:
        return self._base.versions()

    @contextmanager
    def lease(self, number: int | None, label: str | None) -> Iterator[tuple[int, LoadedModel]]:
        """A version that stays in memory until the request is done with it."""
        with self._lock:
            version = self._choose(self._numbered(number, label))
            version.leases += 1
            model = version.model
        assert model is not None, "an available version has its model"
        try:
            yield version.status.version, model
        finally:
            with self._lock:
                version.leases -= 1
                if version.status.state == "UNLOADING" and not version.leases:
                    self._end(version)

    def statuses(self, number: int | None, label: str | None) -> list[VersionStatus]:
        """Newest first."""
        with self._lock:
            wanted = self._numbered(number, label)
            known = [version.status for _, version in sorted(self._versions.items(), reverse=True)]
        chosen = [status for status in known if wanted in (None, status.version)]
        if not chosen:
            what = f"version {wanted}" if wanted is not None else "any version"
            raise Failure(grpc.StatusCode.NOT_FOUND, f"{what} of model {self.config.name!r} not found")
        return chosen

    @property
    def ready(self) -> bool:
        with self._lock:
            return any(version.available for version in self._versions.values())

    @property
    def failures(self) -> list[str]:
        known = [version.status for version in self._versions.values() if version.failed]
        return [f"version {status.version}: {status.message}" for status in known]

    def refresh(self) -> None:
        """Loads what should be served and is not, then lets go of what it replaces; StorageError changes nothing."""
        while True:
            found = self._base.versions()
            if not found:
                raise StorageError("it holds no version")
            chosen, loaded = self._choose_and_load(found)
            # What was withdrawn in the moment it went live must not end the one it was to replace.
            if not loaded or set(chosen) <= set(self._base.versions()):
                break
        if chosen:
            self._retire(keep=chosen)
        self._forget(found)

    def give_up_loading(self) -> None:
        """For a server that ends: `refresh` comes back soon, and loads nothing any more."""
        self._loader.give_up()

    def close(self) -> None:
        self._retire(keep=[])

    def _choose_and_load(self, found: list[int]) -> tuple[list[int], bool]:
        """The versions to serve, all of them available, and whether one had to be loaded for it."""
        wanted, most = self._policy(found)
        chosen: list[int] = []
        loaded = False
        for number in sorted(wanted, reverse=True):
            if len(chosen) == most:
                break
            version = self._known(number)
            if not version.available and self._due(version):
                if (
                    chosen
                ):  # what was withdrawn answers no longer than it must: another is ready, and loading takes long
                    self._retire(keep=found)
                self.load(version)
                loaded = True
            if version.available:
                chosen.append(number)
        return chosen, loaded

    def _policy(self, found: list[int]) -> tuple[list[int], int]:
        """The versions that may be served, and how many of them, counted from the newest that is good."""
        policy = self.config.model_version_policy
        choice = policy.WhichOneof("policy_choice")
        if choice == "specific":
            wanted = [number for number in found if number in policy.specific.versions]
            return wanted, len(wanted)
        if choice == "all":
            return found, len(found)
        return found, max(1, policy.latest.num_versions)

    def _known(self, number: int) -> Version:
        with self._lock:
            version = self._versions.setdefault(number, Version(number))
            if version.status.state == "UNLOADING":  # wanted again before its last request is done: it is still here
                self._set(version, "AVAILABLE")
            return version

    def _due(self, version: Version) -> bool:
        if not version.failed:
            return version.status.state in ("START", "END")
        if self._base.files(version.status.version) != version.failed_files:
            version.attempts = 0
            return True
        rested = time.monotonic() >= version.failed_at + self._loading.retry_seconds
        return version.attempts <= self._loading.retries and rested

    def load(self, version: Version) -> None:
        number = version.status.version
        files = self._base.files(number)
        self._set(version, "LOADING")
        began = time.monotonic()
        try:
            model = self._loader.load(number, files, self._live())
        except Dropped as reason:
            self._drop(version, str(reason))
        except ExportError as error:
            self._fail(version, files, grpc.StatusCode.FAILED_PRECONDITION, str(error))
        except Exception as error:  # a version that cannot be loaded, for whatever reason, must not stop the server
            self._fail(version, files, grpc.StatusCode.INTERNAL, f"{type(error).__name__}: {error}")
        else:
            version.model, version.attempts = model, 0
            self._set(version, "AVAILABLE")
            taken = time.monotonic() - began
            log.info("%s version %d (%s) is served after %.1f s", self.config.name, number, model.fingerprint, taken)

    def _live(self) -> LoadedModel | None:
        with self._lock:
            live = [number for number, version in self._versions.items() if version.available]
            return self._versions[max(live)].model if live else None

    def _drop(self, version: Version, reason: str) -> None:
        """As if it had never been seen: it is new where it comes again."""
        number = version.status.version
        with self._lock:
            self._set(version, "END")
            self._remove(number)
        self._drop_copy(number)
        log.info("%s version %d is not loaded after all: %s", self.config.name, number, reason)

    def _fail(self, version: Version, files: dict[str, File], code: grpc.StatusCode, message: str) -> None:
        version.attempts += 1
        version.failed_at, version.failed_files = time.monotonic(), files
        number = version.status.version
        self._set(version, "END", code, message)
        self._drop_copy(number)
        self._metrics.load_failed(self.config.name, number)
        log.error("%s version %d is not served (attempt %d): %s", self.config.name, number, version.attempts, message)

    def _retire(self, keep: list[int]) -> None:
        for number, version in list(self._versions.items()):
            if version.available and number not in keep:
                with self._lock:
                    self._set(version, "UNLOADING")
                    if not version.leases:
                        self._end(version)
                log.info("%s version %d is no longer served", self.config.name, number)

    def _end(self, version: Version) -> None:
        if version.model is not None:
            version.model.close()
        version.model = None
        self._set(version, "END")
        self._drop_copy(version.status.version)

    def _forget(self, found: list[int]) -> None:
        """Versions that ended and whose directory is gone need not be reported for ever."""
        with self._lock:
            for number, version in list(self._versions.items()):
                if number not in found and version.status.state == "END":
                    self._remove(number)

    def _remove(self, number: int) -> None:
        del self._versions[number]
        self._metrics.forget(self.config.name, number)

    def _drop_copy(self, number: int) -> None:
        shutil.rmtree(self._copies / str(number), ignore_errors=True)

    def _set(self, version: Version, state: str, code: grpc.StatusCode = OK, message: str = "") -> None:
        number = version.status.version
        version.status = VersionStatus(number, state, code, message)
        self._metrics.version(self.config.name, number, state, version.model.fingerprint if version.model else "")

    def _numbered(self, number: int | None, label: str | None) -> int | None:
        if label is None:
            return number
        if label not in self.config.version_labels:
            known = ", ".join(sorted(self.config.version_labels)) or "none"
            raise Failure(grpc.StatusCode.INVALID_ARGUMENT, f"version label {label!r} is not known; there are: {known}")
        return int(self.config.version_labels[label])

    def _choose(self, number: int | None) -> Version:
        available = [known for known, version in self._versions.items() if version.available]
        if number is None and available:
            return self._versions[max(available)]
        if number in available:
            return self._versions[number]
        name = self.config.name
        if number is not None:
            raise Failure(grpc.StatusCode.NOT_FOUND, f"version {number} of model {name!r} is not loaded")
        # Not NOT_FOUND: the model is known, and a client should come back when it has been repaired.
        reasons = "; ".join([f"no version of model {name!r} is loaded", *self.failures])
        raise Failure(grpc.StatusCode.UNAVAILABLE, reasons)
