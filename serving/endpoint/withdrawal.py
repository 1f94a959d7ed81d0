"""Waits until servers have unloaded versions that were withdrawn: from then on none responds to a request."""

from __future__ import annotations

import importlib
import time
from collections.abc import Collection, Mapping, Sequence

import grpc

from common.errors import Outage
from serving.endpoint.pods import DNS, resolved

AVAILABLE = "AVAILABLE"
WAIT_SECONDS = 300.0
LOOK_SECONDS = 0.1
CALL_SECONDS = 10.0


class NotWithdrawn(Outage):
    """A server that cannot be asked, or that still answers by a version that was withdrawn."""


def wait_until_gone(
    addresses: Sequence[str], model: str, versions: Collection[int], seconds: float = WAIT_SECONDS
) -> None:
    """Returns when none of these servers serves or loads one of the versions."""
    end = time.monotonic() + seconds
    for address in _servers(addresses):
        with grpc.insecure_channel(address) as channel:
            while held := _held(version_states(channel, address, model)) & set(versions):
                if time.monotonic() > end:
                    numbers = " and ".join(map(str, sorted(held)))
                    raise NotWithdrawn(
                        f"{numbers} is withdrawn, but {address} still has it after {seconds:.0f} s; its log says why, "
                        "and a restart ends it"
                    )
                time.sleep(LOOK_SECONDS)


def _servers(addresses: Sequence[str]) -> list[str]:
    """With all that a name stands for: one of them alone would speak for the others."""
    found: list[str] = []
    for address in addresses:
        try:
            found += resolved(address.removeprefix(DNS)) if address.startswith(DNS) else [address]
        except OSError as error:
            raise NotWithdrawn(f"{address} does not resolve: {error.strerror or error}") from error
    return found


def _held(states: Mapping[int, str]) -> set[int]:
    """What a server answers by, or will when it is loaded: a version that is being loaded may be past its last look at
    the folder."""
    return {version for version, state in states.items() if state in ("START", "LOADING", AVAILABLE)}


def version_states(channel: grpc.Channel, address: str, model: str) -> dict[int, str]:
    """The state of each version that a server knows, by TensorFlow Serving's words for it."""
    # TensorFlow comes with them, which the withdrawal itself must not wait for, and without its chatter.
    importlib.import_module("common.runtime")
    from tensorflow_serving.apis import get_model_status_pb2, model_pb2, model_service_pb2_grpc

    request = get_model_status_pb2.GetModelStatusRequest(model_spec=model_pb2.ModelSpec(name=model))
    try:
        response = model_service_pb2_grpc.ModelServiceStub(channel).GetModelStatus(request, timeout=CALL_SECONDS)
    except grpc.RpcError as error:
        raise NotWithdrawn(f"{address} does not tell what it serves: {error.code().name}: {error.details()}") from error
    name = get_model_status_pb2.ModelVersionStatus.State.Name
    return {found.version: name(found.state) for found in response.model_version_status}
