"""A pretended endpoint that speaks the real protocol: a text's vector follows from its letters, and versions come and
go as they are told."""

import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
import numpy as np
from companies import DIMENSION, MODEL

from model.contract import INDUSTRY_FIRST, Contract
from serving import wire_pb2 as wire
from serving.endpoint.connection import METHOD, STATUS_METHOD

POISON = "poison"  # a text with this word is refused, and so is any request that holds one


def vector_of(text: str, dimension: int = DIMENSION) -> np.ndarray:
    numbers = np.frombuffer(hashlib.sha256(text.encode()).digest()[: 4 * dimension], "<u4").astype(np.float32)
    return numbers / np.linalg.norm(numbers)


class Encoder:
    def __init__(
        self, model: str = MODEL, recipe: str = INDUSTRY_FIRST, dimension: int = DIMENSION, at: str = "127.0.0.1:0"
    ):
        self.versions = {1: Contract(model, dimension, 128, recipe)}
        self.texts: list[str] = []  # all that were encoded
        self.statuses = 0  # how often it was asked what it serves
        self.hold = lambda: None  # called before a request is answered
        self._lock = threading.Lock()
        self._server = grpc.server(ThreadPoolExecutor(4))
        self._answer(METHOD, self._predict, wire.PredictRequest, wire.PredictResponse)
        self._answer(STATUS_METHOD, self._status, wire.GetModelStatusRequest, wire.GetModelStatusResponse)
        self.address = f"{at.rpartition(':')[0]}:{self._server.add_insecure_port(at)}"
        self._server.start()

    @property
    def contract(self) -> Contract:
        """Of the newest version."""
        return self.versions[max(self.versions)]

    @contract.setter
    def contract(self, contract: Contract) -> None:
        """The same number stands for another model from here on."""
        self.versions = self.versions | {max(self.versions): contract}

    def publish(self, model: str, recipe: str = INDUSTRY_FIRST, dimension: int = DIMENSION, keep: int = 2) -> int:
        """Its version; the newest so many are kept."""
        number = max(self.versions, default=0) + 1
        kept = sorted(self.versions)[-(keep - 1) :] if keep > 1 else []
        self.versions = {one: self.versions[one] for one in kept} | {number: Contract(model, dimension, 128, recipe)}
        return number

    def withdraw(self, version: int) -> None:
        self.versions = {number: contract for number, contract in self.versions.items() if number != version}

    def stop(self) -> None:
        self._server.stop(None).wait()

    def _answer(self, method, handle, asked, answered) -> None:
        _, service, name = method.split("/")
        handler = grpc.unary_unary_rpc_method_handler(handle, asked.FromString, answered.SerializeToString)
        self._server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, {name: handler})])

    def _status(self, request, context):
        with self._lock:
            self.statuses += 1
        response = wire.GetModelStatusResponse()
        for number in self.versions:
            response.model_version_status.add(version=number, state=wire.AVAILABLE)
        return response

    def _asked(self, request, context) -> Contract:
        versions, spec = self.versions, request.model_spec
        number = spec.version.value if spec.HasField("version") else max(versions, default=0)
        if number not in versions:
            context.abort(grpc.StatusCode.NOT_FOUND, f"Servable not found for request: Specific({spec.name}, {number})")
        return versions[number]

    def _predict(self, request, context):
        contract = self._asked(request, context)
        texts = [text.decode() for text in request.inputs["text"].string_val]
        response = wire.PredictResponse()
        if request.model_spec.signature_name == "contract":
            response.outputs["contract"].dtype = wire.STRING
            response.outputs["contract"].string_val.append(contract.to_json().encode())
            return response
        if any(POISON in text for text in texts):
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "this text cannot be encoded")
        self.hold()
        with self._lock:
            self.texts += texts
        embedding, model = response.outputs["embedding"], response.outputs["model"]
        embedding.dtype, model.dtype = wire.FLOAT, wire.STRING
        for size in (len(texts), contract.dimension):
            embedding.tensor_shape.dim.add(size=size)
        vectors = [vector_of(text, contract.dimension) for text in texts]
        embedding.tensor_content = np.stack(vectors).astype("<f4").tobytes()
        model.string_val.extend([contract.fingerprint.encode()] * len(texts))
        return response
