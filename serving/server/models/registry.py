"""The registry of all served models: requests look them up, a thread refreshes them, a configuration changes them."""

from __future__ import annotations

import logging
import tempfile
import threading
from contextlib import AbstractContextManager
from pathlib import Path

import grpc
from tensorflow_serving.config import model_server_config_pb2

from common.errors import InputError
from serving.server.api.status import Failure
from serving.server.config.files import check_models
from serving.server.metrics import Metrics
from serving.server.models.loaded import LoadedModel
from serving.server.models.loading import Loading
from serving.server.models.version import VersionStatus
from serving.server.models.versions import Versions

log = logging.getLogger(__name__)


class Models:
    """Models by name; for any thread."""

    def __init__(
        self,
        config: model_server_config_pb2.ModelServerConfig,
        loading: Loading,
        poll_seconds: float,
        metrics: Metrics,
    ):
        self._loading, self._poll_seconds, self._metrics = loading, poll_seconds, metrics
        self._scratch = tempfile.TemporaryDirectory(prefix="pause-serving-")
        self._models: dict[str, Versions] = self._opened(config)
        self._refreshing = threading.Lock()
        self._stopped = threading.Event()
        self._poller = threading.Thread(target=self._poll, name="versions", daemon=True)

    def start(self) -> None:
        """Loads what there is, then looks for more in the background; InputError where there is nothing at all."""
        if not any(model.found() for model in self._models.values()):
            paths = ", ".join(model.base_path for model in self._models.values())
            raise InputError(f"{paths} holds no version; `python -m serving.publish --to` writes one")
        self._refresh()
        if not any(model.ready for model in self._models.values()):
            reasons = [f"{model.base_path} {why}" for model in self._models.values() for why in model.failures]
            raise InputError(f"no version can be served: {'; '.join(reasons)}")
        if self._poll_seconds:
            self._poller.start()

    def stop(self) -> None:
        self._stopped.set()
        for model in self._models.values():
            model.give_up_loading()
        if self._poller.is_alive():
            self._poller.join()
        for model in self._models.values():
            model.close()
        self._scratch.cleanup()

    def lease(
        self, name: str, number: int | None = None, label: str | None = None
    ) -> AbstractContextManager[tuple[int, LoadedModel]]:
        return self._model(name).lease(number, label)

    def status(self, name: str, version: int | None = None, label: str | None = None) -> list[VersionStatus]:
        return self._model(name).statuses(version, label)

    @property
    def ready(self) -> bool:
        """Whether every model has a version to answer with."""
        return all(model.ready for model in self._models.values())

    def reload(self, config: model_server_config_pb2.ModelServerConfig) -> None:
        """Serves the models of this configuration instead, where it names any; returns when they are loaded."""
        if config.WhichOneof("config") is None:
            return  # as TensorFlow Serving does: an empty message is no wish to serve nothing
        with self._refreshing:
            before, after = self._models, self._checked(config)
            kept = [name for name in after if name in before and before[name].base_path == after[name].base_path]
            self._load_all([model for name, model in after.items() if name not in kept])
            for name in kept:
                before[name].config = after[name].config  # policy and labels may change; what is loaded stays
                after[name] = before[name]
                self._refresh_one(after[name])
            self._models = after
            for name, model in before.items():
                if after.get(name) is not model:
                    model.close()

    def _load_all(self, models: list[Versions]) -> None:
        """Loads models that are new; where one has nothing to serve, none of them is kept."""
        for model in models:
            self._refresh_one(model)
        idle = [
            f"{model.base_path} ({'; '.join(model.failures) or model.trouble})" for model in models if not model.ready
        ]
        if idle:
            for model in models:
                model.close()
            nothing = f"nothing can be served from {', '.join(idle)}; the models stay as they were"
            raise Failure(grpc.StatusCode.FAILED_PRECONDITION, nothing)

    def _checked(self, config: model_server_config_pb2.ModelServerConfig) -> dict[str, Versions]:
        try:
            check_models(config)
            return self._opened(config)
        except InputError as error:
            raise Failure(grpc.StatusCode.INVALID_ARGUMENT, str(error)) from error

    def _opened(self, config: model_server_config_pb2.ModelServerConfig) -> dict[str, Versions]:
        scratch = Path(self._scratch.name)
        return {
            model.name: Versions(model, self._loading, self._metrics, scratch)
            for model in config.model_config_list.config
        }

    def _model(self, name: str) -> Versions:
        model = self._models.get(name)
        if model is None:
            known = ", ".join(sorted(self._models))
            raise Failure(grpc.StatusCode.NOT_FOUND, f"model {name!r} not found; there are: {known}")
        return model

    def _poll(self) -> None:
        while not self._stopped.wait(self._poll_seconds):
            self._refresh()

    def _refresh(self) -> None:
        with self._refreshing:
            for model in self._models.values():
                self._refresh_one(model)

    def _refresh_one(self, model: Versions) -> None:
        """Storage may be away for a while: what is loaded goes on being served, and the log says so once."""
        trouble = ""
        try:
            model.refresh()
        except Exception as error:
            trouble = str(error) or type(error).__name__
            if trouble != model.trouble:
                unforeseen = not isinstance(error, (InputError, OSError))
                path = model.base_path
                log.warning("%s is of no use, what is loaded stays: %s", path, trouble, exc_info=unforeseen)
        model.trouble = trouble
