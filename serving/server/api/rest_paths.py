"""What a path of the REST interface names: a model, perhaps one version of it, and what is asked of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote

from grpc import StatusCode
from tensorflow_serving.apis import model_pb2

from serving.server.api.status import Failure

_MODEL = r"/v1/models(?:/(?P<name>[^/:]+))?(?:/versions/0*(?P<version>[0-9]{1,19})|/labels/(?P<label>[^/:]+))?"
_PATHS = {
    "GET": re.compile(_MODEL + r"(?:/(?P<method>metadata))?", re.IGNORECASE),
    "POST": re.compile(_MODEL + r":(?P<method>predict|classify|regress)", re.IGNORECASE),
}


@dataclass(frozen=True)
class Target:
    """What a path names."""

    method: str
    name: str
    version: int | None
    label: str | None

    def spec(self, signature: str = "") -> model_pb2.ModelSpec:
        spec = model_pb2.ModelSpec(name=self.name, signature_name=signature)
        if self.version is not None:
            spec.version.value = self.version
        if self.label is not None:
            spec.version_label = self.label
        return spec


def target_of(http_method: str, path: str) -> Target:
    if not path.lower().startswith("/v1/"):
        raise Failure(StatusCode.NOT_FOUND, f"there is nothing at {path}; models are at /v1/models/NAME")
    match = _PATHS[http_method].fullmatch(path) if http_method in _PATHS else None
    if match is None:
        raise Failure(StatusCode.INVALID_ARGUMENT, f"malformed request: {http_method} {path}")
    if match["name"] is None:
        raise Failure(StatusCode.INVALID_ARGUMENT, f"the path names no model: {path}")
    version = int(match["version"]) if match["version"] else None
    if version is not None and version >= 2**63:
        raise Failure(StatusCode.INVALID_ARGUMENT, f"version {version} is not a 64-bit number")
    label = unquote(match["label"]) if match["label"] else None
    return Target((match["method"] or "status").lower(), unquote(match["name"]), version, label)
