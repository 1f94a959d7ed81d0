"""A pretended endpoint that speaks the real protocol: a text's vector follows from its letters."""

import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
import numpy as np
from companies import DIMENSION, MODEL

from model.contract import INDUSTRY_FIRST, Contract
from serving import wire_pb2 as wire
from serving.channel import METHOD

POISON = "poison"  # a text with this word is refused, and so is any request that holds one


def vector_of(text: str) -> np.ndarray:
    numbers = np.frombuffer(hashlib.sha256(text.encode()).digest()[: 4 * DIMENSION], "<u4").astype(np.float32)
    return numbers / np.linalg.norm(numbers)


class Encoder:
    def __init__(self, model: str = MODEL, recipe: str = INDUSTRY_FIRST):
        self.contract = Contract(model, DIMENSION, 128, recipe)
        self.texts: list[str] = []  # all that were encoded
        self._lock = threading.Lock()
        self._server = grpc.server(ThreadPoolExecutor(4))
        _, service, name = METHOD.split("/")
        handler = grpc.unary_unary_rpc_method_handler(
            self._predict, wire.PredictRequest.FromString, wire.PredictResponse.SerializeToString
        )
        self._server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, {name: handler})])
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def stop(self) -> None:
        self._server.stop(None).wait()

    def _predict(self, request, context):
        texts = [text.decode() for text in request.inputs["text"].string_val]
        response = wire.PredictResponse()
        if request.model_spec.signature_name == "contract":
            response.outputs["contract"].dtype = wire.STRING
            response.outputs["contract"].string_val.append(self.contract.to_json().encode())
            return response
        if any(POISON in text for text in texts):
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "this text cannot be encoded")
        with self._lock:
            self.texts += texts
        embedding, model = response.outputs["embedding"], response.outputs["model"]
        embedding.dtype, model.dtype = wire.FLOAT, wire.STRING
        for size in (len(texts), DIMENSION):
            embedding.tensor_shape.dim.add(size=size)
        embedding.tensor_content = np.stack([vector_of(text) for text in texts]).astype("<f4").tobytes()
        model.string_val.extend([self.contract.fingerprint.encode()] * len(texts))
        return response
