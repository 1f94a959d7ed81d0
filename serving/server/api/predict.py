"""Predict, for gRPC and REST alike: checks a request, batches its texts, responds in TensorFlow Serving's messages."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import grpc
import numpy as np
from google.protobuf.wrappers_pb2 import BytesValue
from numpy.typing import NDArray
from tensorflow.core.framework import tensor_pb2, tensor_shape_pb2, types_pb2
from tensorflow_serving.apis import get_model_metadata_pb2, model_pb2, predict_pb2

from serving.server.api.status import Failure, refuse
from serving.server.compute.batching import Batcher
from serving.server.models.loaded import SIGNATURE, LoadedModel
from serving.server.models.registry import Models
from serving.tracing import spans

TEXTS_PER_REQUEST = 16_384  # their vectors already fill some 25 MB
BYTES_PER_TEXT = 2**20  # cutting it into tokens takes half a second, and all but the first of them are dropped
BYTES_PER_REQUEST = 32 * 2**20
FLOAT_VAL = bytes([tensor_pb2.TensorProto.FLOAT_VAL_FIELD_NUMBER << 3 | 2])  # the tag of that field, packed
QUOTED = 8  # dimensions or names of a wrong request that its error repeats


class Predictor:
    """Answers Predict and GetModelMetadata from the versions that are loaded."""

    def __init__(self, models: Models, batcher: Batcher):
        self._models, self._batcher = models, batcher

    async def predict(self, request: predict_pb2.PredictRequest, compact: bool = False) -> predict_pb2.PredictResponse:
        """Numbers in the fields that TensorFlow Serving fills, or, where they are to be `compact`, as bytes."""
        with self._models.lease(*wanted(request)) as (number, model):
            name = request.model_spec.signature_name or SIGNATURE
            chosen = _outputs(request, name, model)
            texts = _texts(request, name, model)
            outputs = await self._run(request.model_spec.name, name, model, texts)
            response = predict_pb2.PredictResponse()
            _identify(response.model_spec, request.model_spec.name, number)
            response.model_spec.signature_name = name
            for output in chosen:
                _fill(response.outputs[output], outputs[output], compact)
            return response

    def metadata(
        self, request: get_model_metadata_pb2.GetModelMetadataRequest
    ) -> get_model_metadata_pb2.GetModelMetadataResponse:
        if not request.metadata_field:
            refuse("GetModelMetadataRequest must specify at least one metadata_field")
        unknown = [name for name in request.metadata_field if name != "signature_def"]
        if unknown:
            refuse(f"Metadata field {unknown[0]} is not supported")
        with self._models.lease(*wanted(request)) as (number, model):
            response = get_model_metadata_pb2.GetModelMetadataResponse()
            _identify(response.model_spec, request.model_spec.name, number)
            signatures = get_model_metadata_pb2.SignatureDefMap(signature_def=model.signatures)
            response.metadata["signature_def"].Pack(signatures)
            return response

    async def _run(self, model_name: str, name: str, model: LoadedModel, texts: list[bytes]) -> dict[str, NDArray[Any]]:
        if name != SIGNATURE:
            return await asyncio.to_thread(model.respond, name, texts)
        with spans.span("tokenize", texts=len(texts)):
            token_ids = await asyncio.to_thread(model.tokenize, texts)
        vectors = await asyncio.wrap_future(self._batcher.submit(model, model_name, token_ids))
        return {"embedding": vectors, "model": np.full(len(texts), model.fingerprint.encode(), object)}


def wanted(request: Any) -> tuple[str, int | None, str | None]:
    """Model name, version number and version label of any request that has a model_spec."""
    if not request.HasField("model_spec"):
        refuse("Missing ModelSpec")
    return chosen_version(request.model_spec)


def chosen_version(spec: model_pb2.ModelSpec) -> tuple[str, int | None, str | None]:
    if not spec.name:
        refuse("ModelSpec has no name specified.")
    choice = spec.WhichOneof("version_choice")
    version = spec.version.value if choice == "version" else None
    return spec.name, version, spec.version_label if choice == "version_label" else None


def signatures_of(
    predictor: Predictor, spec: model_pb2.ModelSpec
) -> tuple[model_pb2.ModelSpec, get_model_metadata_pb2.SignatureDefMap]:
    """The version that would answer, and the signatures it has."""
    asked = get_model_metadata_pb2.GetModelMetadataRequest(model_spec=spec, metadata_field=["signature_def"])
    response = predictor.metadata(asked)
    signatures = get_model_metadata_pb2.SignatureDefMap()
    response.metadata["signature_def"].Unpack(signatures)
    return response.model_spec, signatures


def _outputs(request: predict_pb2.PredictRequest, name: str, model: LoadedModel) -> list[str]:
    """The outputs asked for, or all that the signature has."""
    if name not in model.signatures or name.startswith("__"):  # those are for whoever loads the model
        known = ", ".join(sorted(key for key in model.signatures if not key.startswith("__")))
        raise Failure(grpc.StatusCode.FAILED_PRECONDITION, f"signature {name!r} not found; there are: {known}")
    known_outputs = sorted(model.signatures[name].outputs)
    for position, output in enumerate(request.output_filter):
        if output not in known_outputs:
            refuse(f"output {output!r} not found in signature {name!r}; it has: {', '.join(known_outputs)}")
        if output in request.output_filter[:position]:
            refuse(f"output {output!r} is asked for twice")
    return list(request.output_filter) or known_outputs


def _texts(request: predict_pb2.PredictRequest, name: str, model: LoadedModel) -> list[bytes]:
    """The strings of the one input that all signatures of this model have."""
    expected = set(model.signatures[name].inputs)
    if len(request.inputs) != len(expected) or set(request.inputs) != expected:
        given = ", ".join(sorted(itertools.islice(request.inputs, QUOTED)))
        refuse(f"inputs {{{given}}} do not match signature {name!r}, which takes {{{', '.join(sorted(expected))}}}")
    tensor = request.inputs[next(iter(expected))]
    if tensor.dtype != types_pb2.DT_STRING:
        dtype = types_pb2.DataType.Name(tensor.dtype) if tensor.dtype in types_pb2.DataType.values() else tensor.dtype
        refuse(f"input 'text' must be DT_STRING, got {dtype}")
    return _values(tensor, _count(tensor.tensor_shape))


def _count(shape: tensor_shape_pb2.TensorShapeProto) -> int:
    # Counted before anything is listed: a message of 32 MB has room for millions of dimensions, and of values below.
    if shape.unknown_rank:
        refuse("input 'text' must have shape [n], got an unknown rank")
    if len(shape.dim) != 1 or shape.dim[0].size < 0:
        sizes = ", ".join(str(dim.size) for dim in shape.dim[:QUOTED])
        refuse(f"input 'text' must have shape [n], got [{sizes}{', ...' if len(shape.dim) > QUOTED else ''}]")
    count = int(shape.dim[0].size)
    if count > TEXTS_PER_REQUEST:
        refuse(f"{count} texts in one request; at most {TEXTS_PER_REQUEST} are taken")
    return count


def _values(tensor: tensor_pb2.TensorProto, count: int) -> list[bytes]:
    if tensor.tensor_content:
        refuse("input 'text' has tensor_content: strings go into string_val")
    given = len(tensor.string_val)
    longest = max(map(len, tensor.string_val), default=0)
    if longest > BYTES_PER_TEXT:
        refuse(f"a text of {longest} bytes; at most {BYTES_PER_TEXT} are taken, and far fewer are encoded")
    if given == count:
        return list(tensor.string_val)
    if given != 1:
        refuse(f"input 'text' has shape [{count}] but {given} values")
    # One value may stand for all, as in every tensor message, but not make a small message a huge one.
    (value,) = tensor.string_val
    if count * len(value) > BYTES_PER_REQUEST:
        refuse(f"{count} texts of {len(value)} bytes in one request; at most {BYTES_PER_REQUEST} bytes are taken")
    return [value] * count


def _fill(tensor: tensor_pb2.TensorProto, values: NDArray[Any], compact: bool) -> None:
    for size in values.shape:
        tensor.tensor_shape.dim.add(size=size)
    if values.dtype == object:
        tensor.dtype = types_pb2.DT_STRING
        tensor.string_val.extend(values.ravel())
    else:
        tensor.dtype = types_pb2.DT_FLOAT
        numbers = np.ascontiguousarray(values, "<f4").tobytes()
        if compact:
            tensor.tensor_content = numbers
        else:
            tensor.MergeFromString(_packed(numbers))


def _packed(numbers: bytes) -> bytes:
    """`float_val` as it travels: a field of bytes has the same form, but for its own number, which comes first. To add
    number by number would take a hundred times as long."""
    return FLOAT_VAL + BytesValue(value=numbers).SerializeToString()[1:] if numbers else b""


def _identify(spec: model_pb2.ModelSpec, name: str, number: int) -> None:
    spec.name = name
    spec.version.value = number
