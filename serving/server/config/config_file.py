"""Reads --model_config_file again while the server runs; it is the operator's own, so it may name any base path."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from tensorflow_serving.config.model_server_config_pb2 import ModelServerConfig

from common.errors import InputError
from serving.server.api.status import Failure
from serving.server.config.files import read_models
from serving.server.models.registry import Models

log = logging.getLogger(__name__)


async def follow(path: Path, seconds: float, models: Models, served: ModelServerConfig) -> None:
    """Looks every so many seconds, until it is cancelled; a file that cannot be served is logged once, and changes
    nothing."""
    told = ""
    while True:
        await asyncio.sleep(seconds)
        trouble = ""
        try:
            found = await asyncio.to_thread(read_models, path)
            if found != served:
                await asyncio.to_thread(models.reload, found)
                served = found
                log.info("the models of %s are served", path)
        except (InputError, Failure) as error:
            trouble = str(error)
            if trouble != told:
                log.error("%s is not taken, the models stay as they were: %s", path, trouble)
        told = trouble
