"""Which version of a model has which fingerprint, at each server of an endpoint: vectors by fingerprint, not newest.

Versions are numbers of one server's folders: at two servers one number may stand for two models, and a server that was
set up anew may begin at 1 again; while a model is rolled out some have it and some do not. So each server has a table
of its own, and every answer names its model.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

import grpc

from model.contract import Contract
from serving import wire_pb2 as wire
from serving.endpoint.channel import RETRIED, Endpoint, ModelNotServed, NotReady
from serving.endpoint.messages import contract_of, predict_request
from serving.endpoint.pods import Pod

# What a server answers for a version that it has let go of.
GONE = (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.FAILED_PRECONDITION)

LOOK_AGAIN_SECONDS = 5.0  # one that had not the model may have loaded it since

Table = Mapping[str, int]  # of one server: fingerprint -> its highest version that answers


class Versions:
    """For all threads. A server is asked what it serves when a model is not in its table, or no longer there."""

    def __init__(self, endpoint: Endpoint, name: str):
        self._endpoint, self._name = endpoint, name
        self._contracts: dict[str, Contract] = {}  # for good: a fingerprint stands for one contract

    def served(self) -> dict[str, int]:
        """Fingerprint -> version of all that any server answers with at this moment, the highest version first."""
        responded, table = self._endpoint.tried(
            lambda pod, timeout: (pod, self._look(pod, time.monotonic() + timeout)), spread=False
        )
        found = dict(table)
        for pod in (one for one in self._endpoint.pods if one is not responded):
            try:
                table = self._look(pod, time.monotonic() + self._endpoint.timeout)
            except (grpc.RpcError, NotReady):  # one server that is down takes nothing from what the others serve
                continue
            found |= {model: max(version, found.get(model, version)) for model, version in table.items()}
        return dict(sorted(found.items(), key=lambda pair: -pair[1]))

    def contract(self, model: str) -> Contract:
        known = self._contracts.get(model)
        if known is None:
            known = self._endpoint.tried(
                lambda pod, timeout: self._stated_by(pod, model, time.monotonic() + timeout), spread=False
            )
        return known

    def predict(
        self, request: wire.PredictRequest, model: str, abandoned: threading.Event | None = None
    ) -> wire.PredictResponse:
        """The answer of that very model; ModelNotServed where no server has it."""
        return self._endpoint.tried(
            lambda pod, timeout: self._ask(pod, request, model, time.monotonic() + timeout),
            abandoned,
            lambda pod: _may_serve(pod, model),
        )

    def _ask(self, pod: Pod, request: wire.PredictRequest, model: str, end: float) -> wire.PredictResponse:
        wanted = model.encode()
        table = self._table(pod, model, end)
        for _ in range(2):  # a version may go between two requests: the server is asked once more what it serves
            if model not in table:
                break
            request.model_spec.version.value = table[model]
            try:
                response = pod.connection.predict(request, timeout=_left(end))
                if all(made == wanted for made in response.outputs["model"].string_val):
                    return response
            except grpc.RpcError as error:
                if error.code() not in GONE:
                    raise
            table = self._look(pod, end, table)
        raise self._not_served(model)

    def _table(self, pod: Pod, model: str, end: float) -> Table:
        table = pod.served
        return table if model in table else self._look(pod, end, table)

    def _stated_by(self, pod: Pod, model: str, end: float) -> Contract:
        if model not in self._table(pod, model, end):
            raise self._not_served(model)
        return self._contracts[model]

    def _look(self, pod: Pod, end: float, seen: Table | None = None) -> Table:
        """What a server serves now; not asked again where another thread did since the caller saw `seen`."""
        with pod.looking:
            if seen is not None and pod.served is not seen:
                return pod.served
            request = wire.GetModelStatusRequest(model_spec=wire.ModelSpec(name=self._name))
            states = pod.connection.status(request, timeout=_left(end)).model_version_status
            available = sorted(one.version for one in states if one.state == wire.AVAILABLE)
            if not available:
                raise NotReady(f"no version of model {self._name!r} is loaded")
            table: dict[str, int] = {}
            for version in available:  # ascending: of two versions with one fingerprint the higher is kept for longer
                contract = self._stated(pod, version, end)
                if contract:
                    self._contracts[contract.fingerprint] = contract
                    table[contract.fingerprint] = version
            pod.served, pod.looked = table, time.monotonic()
            return table

    def _stated(self, pod: Pod, version: int, end: float) -> Contract | None:
        """None of a version that has just gone, or is no model of ours."""
        request = predict_request(self._name, "contract", [b""])
        request.model_spec.version.value = version
        try:
            return contract_of(pod.connection.predict(request, timeout=_left(end)))
        except grpc.RpcError as error:
            if error.code() in RETRIED:
                raise
        except (ValueError, LookupError, TypeError):
            pass
        return None

    def _not_served(self, model: str) -> ModelNotServed:
        tables = [pod.served for pod in self._endpoint.pods]
        served = {f"{made} as version {version}" for table in tables for made, version in table.items()}
        return ModelNotServed(
            f"serving at {', '.join(self._endpoint.addresses)} has no version of {self._name!r} with fingerprint "
            f"{model}, it has {' and '.join(sorted(served)) or 'none that states one'}; publish that model again, keep "
            "more versions (--keep_versions, num_versions), or move the index by `python -m pipelines.reindex`"
        )


def _may_serve(pod: Pod, model: str) -> bool:
    """Whether it has the model, as far as is known, or should be asked."""
    return model in pod.served or time.monotonic() - pod.looked > LOOK_AGAIN_SECONDS


def _left(end: float) -> float:
    return max(0.001, end - time.monotonic())
