"""HandleReloadConfigRequest: replaces the served models, where the operator has allowed it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import grpc
from tensorflow_serving.apis import model_management_pb2
from tensorflow_serving.config import model_server_config_pb2

from common.errors import InputError
from serving.server.api.status import Failure, refuse
from serving.server.config.roots import Roots
from serving.server.models.registry import Models

OFF = "models are not reloaded by gRPC here; a server started with --allow_reload_by_grpc does"


class Reload:
    """`roots` are what base paths must be below; None where nobody may reload."""

    def __init__(self, models: Models, roots: Sequence[str] | None):
        self._models = models
        self._roots = None if roots is None else Roots(roots)

    async def respond(
        self, request: model_management_pb2.ReloadConfigRequest
    ) -> model_management_pb2.ReloadConfigResponse:
        if self._roots is None:
            raise Failure(grpc.StatusCode.PERMISSION_DENIED, OFF)
        # No list is a mistake, whereas an empty one is the wish to serve nothing.
        if not request.config.HasField("model_config_list"):
            refuse("the request has no model_config_list")
        try:
            await asyncio.to_thread(self._reload, self._roots, request.config)
        except InputError as error:
            refuse(str(error))
        return model_management_pb2.ReloadConfigResponse()

    def _reload(self, roots: Roots, config: model_server_config_pb2.ModelServerConfig) -> None:
        for model in config.model_config_list.config:
            roots.check(model.base_path)
        self._models.reload(config)
