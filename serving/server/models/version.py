"""One version of a model: its number, state and leases."""

from __future__ import annotations

from dataclasses import dataclass

import grpc

from serving.server.models.loaded import LoadedModel
from serving.storage.base import File

OK = grpc.StatusCode.OK


@dataclass(frozen=True)
class VersionStatus:
    """What GetModelStatus says of a version."""

    version: int
    state: str  # START, LOADING, AVAILABLE, UNLOADING, END
    code: grpc.StatusCode = OK
    message: str = ""


class Version:
    """One numbered directory and what became of it."""

    def __init__(self, number: int):
        self.status = VersionStatus(number, "START")
        self.model: LoadedModel | None = None
        self.leases = 0
        self.attempts = 0
        self.failed_at = 0.0
        self.failed_files: dict[str, File] = {}  # a version that was repaired has others

    @property
    def available(self) -> bool:
        return self.status.state == "AVAILABLE"

    @property
    def failed(self) -> bool:
        return self.status.code is not OK
