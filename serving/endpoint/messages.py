"""Writes requests and reads responses in TensorFlow Serving's messages."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from model.contract import Contract
from serving import wire_pb2 as wire
from serving.endpoint.channel import ServingUnavailable

Vectors = NDArray[np.float32]


def predict_request(model: str, signature: str, texts: Sequence[bytes]) -> wire.PredictRequest:
    request = wire.PredictRequest(model_spec=wire.ModelSpec(name=model, signature_name=signature))
    tensor = request.inputs["text"]
    tensor.dtype = wire.STRING
    tensor.tensor_shape.dim.add(size=len(texts))
    tensor.string_val.extend(texts)
    return request


def contract_of(response: wire.PredictResponse) -> Contract:
    """Raises ValueError, LookupError or TypeError for a model that states none."""
    return Contract.from_json(response.outputs["contract"].string_val[0])


def vectors_of(response: wire.PredictResponse, count: int) -> list[tuple[Vectors, str]]:
    """The vector [d] and the fingerprint of each of the `count` texts that were sent."""
    embedding, names = response.outputs["embedding"], response.outputs["model"].string_val
    shape = [dim.size for dim in embedding.tensor_shape.dim]
    flat = _floats(embedding) if embedding.dtype == wire.FLOAT else np.empty(0, np.float32)
    if len(shape) != 2 or shape[0] != count or len(names) != count or flat.size != shape[0] * shape[1]:
        raise ServingUnavailable(
            f"{count} texts were answered with {flat.size} floats of shape {shape} and {len(names)} fingerprints; "
            "serve a model that `python -m model.export` made"
        )
    return list(zip(flat.reshape(shape), (name.decode(errors="replace") for name in names), strict=True))


def _floats(tensor: wire.Tensor) -> Vectors:
    if tensor.tensor_content:
        return np.frombuffer(tensor.tensor_content, "<f4")
    # TensorFlow Serving's own way is the repeated field, a hundred times slower to read number by number than from the
    # end of the message, where it is packed as the last field.
    count = len(tensor.float_val)
    tensor.ClearField("string_val")
    tensor.DiscardUnknownFields()
    packed = tensor.SerializeToString()
    return np.frombuffer(packed, "<f4", count, len(packed) - 4 * count)
