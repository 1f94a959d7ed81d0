"""JSON of TensorFlow Serving's REST interface -> tensors, and back: rows (`instances`) or columns (`inputs`)."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from enum import Enum
from itertools import chain
from typing import Any

import grpc
import numpy as np
import orjson
import tensorflow as tf
from numpy.typing import NDArray
from tensorflow.core.framework import tensor_pb2, types_pb2
from tensorflow.core.protobuf import meta_graph_pb2

from serving.server.api.status import Failure, refuse

QUOTED = 60  # characters of a wrong value that its error repeats


class Layout(Enum):
    """How a request names its inputs, which is how it is answered."""

    ROWS = "predictions"
    COLUMNS = "outputs"


# JSON -> tensors


def parse(body: bytes) -> dict[str, Any]:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        refuse(f"the body is not JSON: {error}")
    if not isinstance(document, dict):
        refuse(f"the body must be a JSON object, got {_quote(document)}")
    return document


def signature_name(document: Mapping[str, Any]) -> str:
    """Empty where the request names none."""
    name = document.get("signature_name", "")
    if not isinstance(name, str):
        refuse(f"'signature_name' must be a string, got {_quote(name)}")
    return name


def read_examples(document: Mapping[str, Any], method: str) -> list[dict[str, Any]]:
    """What classify and regress take in place of tensors."""
    examples = document.get("examples")
    if not isinstance(examples, list) or not examples:
        refuse(f"{method} takes a list 'examples' that is not empty, got {_quote(examples)}")
    for position, example in enumerate(examples):
        if not isinstance(example, dict):
            refuse(f"examples[{position}] must be an object, got {_quote(example)}")
    return examples


def read_inputs(
    document: Mapping[str, Any], signature: meta_graph_pb2.SignatureDef
) -> tuple[dict[str, tensor_pb2.TensorProto], Layout]:
    """The tensors of a predict request by input name, and the layout they came in."""
    if not signature.inputs:
        refuse("the signature takes no inputs")
    if ("instances" in document) == ("inputs" in document):
        given = "both" if "inputs" in document else "neither"
        refuse(f"the body must have either 'instances' or 'inputs', got {given}")
    if "instances" in document:
        layout, columns = Layout.ROWS, _columns_of_rows(document["instances"], set(signature.inputs))
    else:
        layout, columns = Layout.COLUMNS, _columns(document["inputs"], set(signature.inputs))
    return {name: _tensor(name, signature.inputs[name].dtype, column) for name, column in columns.items()}, layout


def _columns_of_rows(instances: Any, names: set[str]) -> dict[str, list[Any]]:
    if not isinstance(instances, list):
        refuse(f"'instances' must be a list, got {_quote(instances)}")
    if not instances:
        refuse("'instances' must hold at least one value, got an empty list")
    named = _is_named(instances[0])
    if not named and len(names) > 1:
        refuse(f"'instances' must hold objects with the keys {_joined(names)}, got {_quote(instances[0])}")
    for position, instance in enumerate(instances):
        if _is_named(instance) != named:
            refuse(f"'instances' must hold objects only or none: instances[{position}] is {_quote(instance)}")
        if named and instance.keys() != names:
            refuse(f"instances[{position}] must have the keys {_joined(names)}, got {_joined(instance) or 'none'}")
    if named:
        return {name: [instance[name] for instance in instances] for name in names}
    return {next(iter(names)): instances}


def _columns(inputs: Any, names: set[str]) -> dict[str, Any]:
    if _is_named(inputs):
        missing = names - inputs.keys()
        if missing:
            refuse(f"'inputs' must have the keys {_joined(names)}, {_joined(missing)} is missing")
        return {name: inputs[name] for name in names}  # others are let pass, as TensorFlow Serving does
    if len(names) > 1:
        refuse(f"'inputs' must be an object with the keys {_joined(names)}, got {_quote(inputs)}")
    return {next(iter(names)): inputs}


def _tensor(name: str, dtype: int, value: Any) -> tensor_pb2.TensorProto:
    if dtype != types_pb2.DT_STRING:
        kind = types_pb2.DataType.Name(dtype)
        raise Failure(grpc.StatusCode.UNIMPLEMENTED, f"input {name!r} is {kind}; only strings are taken as JSON")
    shape, values = _flat(name, value)
    tensor = tensor_pb2.TensorProto(dtype=dtype, string_val=[_bytes(name, value) for value in values])
    for size in shape:
        tensor.tensor_shape.dim.add(size=size)
    return tensor


def _flat(name: str, value: Any) -> tuple[list[int], list[Any]]:
    """Shape and values of nested lists; level by level, since nesting may be deeper than Python's stack."""
    shape: list[int] = []
    values = [value]
    while any(isinstance(item, list) for item in values):
        if not all(isinstance(item, list) for item in values):
            refuse(f"input {name!r} is ragged: a value stands beside a list at depth {len(shape)}")
        sizes = {len(item) for item in values}
        if len(sizes) > 1:
            refuse(f"input {name!r} is ragged: lists of {min(sizes)} and {max(sizes)} at depth {len(shape)}")
        shape.append(sizes.pop())
        values = list(chain.from_iterable(values))
    return shape, values


def _bytes(name: str, value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if not _is_base64(value):
        refuse(f'input {name!r} takes strings or {{"b64": "..."}}, got {_quote(value)}')
    text = "".join(value["b64"].split())
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)  # padding may be left out
    except ValueError as error:  # binascii.Error, or characters beyond ASCII
        refuse(f"input {name!r}: {_quote(value)} is not base64: {error}")


def _is_base64(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"b64"} and isinstance(value["b64"], str)


def _is_named(value: Any) -> bool:
    return isinstance(value, dict) and not _is_base64(value)


# tensors -> JSON


def write_outputs(outputs: Mapping[str, tensor_pb2.TensorProto], layout: Layout) -> bytes:
    """Floats in the shortest form that reads back as the same float32; what is no finite number becomes null."""
    if not outputs:
        refuse("there are no outputs to write")
    columns = {name: _column(name, tf.make_ndarray(outputs[name])) for name in sorted(outputs)}
    if layout is Layout.COLUMNS:
        response = _unwrapped(columns)
    else:
        response = [
            _unwrapped({name: column[row] for name, column in columns.items()}) for row in range(_row_count(outputs))
        ]
    try:
        return orjson.dumps({layout.value: response}, option=orjson.OPT_SERIALIZE_NUMPY)
    except orjson.JSONEncodeError as error:
        refuse(f"the outputs have no form in JSON: {error}")


def _row_count(outputs: Mapping[str, tensor_pb2.TensorProto]) -> int:
    sizes = {name: [dim.size for dim in tensor.tensor_shape.dim][:1] for name, tensor in sorted(outputs.items())}
    first = next(iter(sizes.values()))
    if not first or any(size != first for size in sizes.values()):
        refuse(f"the outputs are not rows of one batch, their first dimensions are {sizes}: ask by 'inputs' instead")
    return int(first[0])


def _column(name: str, values: NDArray[Any]) -> Any:
    if values.dtype != object:
        return values[()]  # a scalar where there are no dimensions
    texts = np.empty(values.size, object)
    texts[:] = [_text(value, binary=name.endswith("_bytes")) for value in values.flat]
    return texts.reshape(values.shape).tolist()


def _text(value: bytes, binary: bool) -> str | dict[str, str]:
    if not binary:
        try:
            return value.decode()
        except UnicodeDecodeError:
            pass  # JSON holds no other bytes: they go as bytes do, whole
    return {"b64": base64.b64encode(value).decode()}


def _unwrapped(named: dict[str, Any]) -> Any:
    return named if len(named) > 1 else next(iter(named.values()))


# errors


def _joined(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in sorted(names))


def _quote(value: Any) -> str:
    try:
        text = orjson.dumps(value).decode()
    except orjson.JSONEncodeError:  # it reads deeper nesting than it writes
        text = f"{'an object' if isinstance(value, dict) else 'a list'} of many levels"
    return text if len(text) <= QUOTED else f"{text[:QUOTED]}..."
