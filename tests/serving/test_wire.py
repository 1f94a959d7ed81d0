"""The client's own messages against TensorFlow Serving's: the same bytes, in both directions."""

import re
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf.descriptor import FieldDescriptor
from tensorflow.core.framework import tensor_pb2, tensor_shape_pb2
from tensorflow_serving.apis import get_model_status_pb2, model_pb2, predict_pb2

from serving import wire_pb2 as wire
from serving.endpoint.channel import ServingUnavailable
from serving.endpoint.messages import predict_request, vectors_of

PROTO = Path(wire.__file__).with_name("wire.proto")
COUNTERPARTS = [
    (wire.PredictRequest, predict_pb2.PredictRequest),
    (wire.PredictResponse, predict_pb2.PredictResponse),
    (wire.ModelSpec, model_pb2.ModelSpec),
    (wire.GetModelStatusRequest, get_model_status_pb2.GetModelStatusRequest),
    (wire.GetModelStatusResponse, get_model_status_pb2.GetModelStatusResponse),
    (wire.ModelVersionStatus, get_model_status_pb2.ModelVersionStatus),
    (wire.Tensor, tensor_pb2.TensorProto),
    (wire.TensorShape, tensor_shape_pb2.TensorShapeProto),
    (wire.TensorShape.Dim, tensor_shape_pb2.TensorShapeProto.Dim),
]
VECTORS = np.arange(6, dtype=np.float32).reshape(2, 3) / 7


def response(as_content=True):
    """Two vectors as TensorFlow Serving writes them: as bytes, or, its own default, number by number."""
    made = predict_pb2.PredictResponse()
    tensor = made.outputs["embedding"]
    tensor.CopyFrom(tf.make_tensor_proto(VECTORS))
    assert tensor.tensor_content
    if not as_content:
        tensor.tensor_content = b""
        tensor.float_val.extend(VECTORS.flatten().tolist())
    made.outputs["model"].CopyFrom(tf.make_tensor_proto([b"abc", b"def"]))
    made.model_spec.name = "pause"
    made.model_spec.version.value = 7
    return made


def read(theirs, count=2):
    return vectors_of(wire.PredictResponse.FromString(theirs.SerializeToString()), count)


@pytest.mark.parametrize("texts", [[], [b"one"], [b"", "für 中文 🚀".encode(), b"x" * 10_000, b"\xff"]])
@pytest.mark.parametrize("signature", ["serving_default", "contract"])
def test_a_request_has_the_bytes_that_tensorflow_serving_would_write(texts, signature):
    theirs = predict_pb2.PredictRequest()
    theirs.model_spec.name = "pause"
    theirs.model_spec.signature_name = signature
    theirs.inputs["text"].CopyFrom(tf.make_tensor_proto(texts, tf.string, [len(texts)]))
    ours = predict_request("pause", signature, texts)
    assert ours.SerializeToString(deterministic=True) == theirs.SerializeToString(deterministic=True)


def test_a_request_with_every_field_has_the_same_bytes():
    made = []
    for message in (wire.PredictRequest(), predict_pb2.PredictRequest()):
        message.model_spec.name = "pause"
        message.model_spec.version.value = -3
        message.output_filter.extend(["embedding", "model"])
        for name in ("text", "other"):
            tensor = message.inputs[name]
            tensor.dtype, tensor.tensor_content = 1, b"\x00\x01"
            tensor.tensor_shape.dim.add(size=-1)
            tensor.float_val.extend([0.5, -2.0])
            tensor.string_val.append(b"\xff")
        made.append(message.SerializeToString(deterministic=True))
    assert made[0] == made[1]


def test_a_request_for_the_versions_has_the_same_bytes():
    made = []
    for request in (wire.GetModelStatusRequest(), get_model_status_pb2.GetModelStatusRequest()):
        request.model_spec.name = "pause"
        request.model_spec.version.value = 7
        made.append(request.SerializeToString(deterministic=True))
    assert made[0] == made[1]


def test_versions_and_their_states_written_by_tensorflow_serving_are_read_and_written_again():
    theirs = get_model_status_pb2.GetModelStatusResponse()
    for number, state in enumerate(get_model_status_pb2.ModelVersionStatus.State.values()):
        theirs.model_version_status.add(version=number, state=state).status.error_message = "a field not known here"
    ours = wire.GetModelStatusResponse.FromString(theirs.SerializeToString())
    assert [one.version for one in ours.model_version_status if one.state == wire.AVAILABLE] == [3]
    assert ours.SerializeToString(deterministic=True) == theirs.SerializeToString(deterministic=True)


@pytest.mark.parametrize("as_content", [True, False])
def test_a_response_has_the_same_bytes_when_it_is_read_and_written_again(as_content):
    theirs = response(as_content).SerializeToString(deterministic=True)
    assert wire.PredictResponse.FromString(theirs).SerializeToString(deterministic=True) == theirs


@pytest.mark.parametrize("as_content", [True, False])
def test_vectors_written_by_tensorflow_are_read(as_content):
    found = read(response(as_content))
    assert [name for _, name in found] == ["abc", "def"]
    np.testing.assert_array_equal([vector for vector, _ in found], VECTORS)


def test_numbers_are_read_whatever_else_the_tensor_holds():
    theirs = response(as_content=False)
    theirs.outputs["embedding"].version_number = 9  # a field that the client does not know
    theirs.outputs["embedding"].double_val.append(1.5)
    theirs.outputs["embedding"].string_val.append(b"later")
    np.testing.assert_array_equal([vector for vector, _ in read(theirs)], VECTORS)


def test_what_does_not_belong_to_the_texts_sent_is_not_taken_for_their_vectors():
    with pytest.raises(ServingUnavailable, match=r"3 texts were answered with 6 floats of shape \[2, 3\] and 2 finger"):
        read(response(), count=3)
    flat = response()
    flat.outputs["embedding"].tensor_shape.dim.pop()
    short = response()
    short.outputs["embedding"].tensor_content = short.outputs["embedding"].tensor_content[:-4]
    nameless = response()
    del nameless.outputs["model"]
    whole = response()
    whole.outputs["embedding"].dtype = tf.int32.as_datatype_enum  # as many bytes as floats have
    for wrong in (flat, short, nameless, whole, predict_pb2.PredictResponse()):
        with pytest.raises(ServingUnavailable, match="2 texts were answered"):
            read(wrong)


@pytest.mark.parametrize(("ours", "theirs"), COUNTERPARTS, ids=lambda message: message.DESCRIPTOR.full_name)
def test_every_field_has_the_number_and_the_type_that_tensorflow_serving_gives_it(ours, theirs):
    assert ours.DESCRIPTOR.fields
    known = {field.name: field for field in theirs.DESCRIPTOR.fields}
    for field in ours.DESCRIPTOR.fields:
        assert kind(field) == kind(known[field.name]), field.full_name


def kind(field):
    """All that decides a field's bytes; for a map, its key and value."""
    entry = field.message_type if field.message_type and field.message_type.GetOptions().map_entry else None
    parts = [(part.name, part.number, part.type) for part in entry.fields] if entry else []
    group = field.containing_oneof.name if field.containing_oneof else None
    return field.number, field.type, field.is_repeated, field.is_packed, group, parts


def test_data_types_have_tensorflows_numbers():
    assert (tf.float32.as_datatype_enum, tf.string.as_datatype_enum) == (wire.FLOAT, wire.STRING)


def test_states_of_a_version_have_tensorflow_servings_numbers():
    assert dict(wire.VersionState.items()) == dict(get_model_status_pb2.ModelVersionStatus.State.items())


# the generated module, against the file that it was generated from


def declared(text):
    """'Message.field' -> (type as it is written, number), by reading the .proto line by line."""
    found, inside = {}, []
    for line in re.sub("//.*", "", text).splitlines():
        if opened := re.match(r"\s*(message|enum|oneof) (\w+) {", line):
            inside.append("" if opened[1] == "oneof" else opened[2])
        elif field := re.match(r"\s*([\w.<>, ]*?) ?(\w+) = (\d+);", line):
            found[".".join([*filter(None, inside), field[2]])] = (field[1].strip(), int(field[3]))
        elif line.strip() == "}":
            inside.pop()
    return found


def generated():
    found = {}
    for name, enum in wire.DESCRIPTOR.enum_types_by_name.items():
        found |= {f"{name}.{value.name}": ("", value.number) for value in enum.values}
    waiting = list(wire.DESCRIPTOR.message_types_by_name.values())
    for message in waiting:
        nested = [inner for inner in message.nested_types if not inner.GetOptions().map_entry]
        waiting.extend(nested)
        name = message.full_name.removeprefix("pause.wire.")
        found |= {f"{name}.{field.name}": (written(field), field.number) for field in message.fields}
    return found


def written(field):
    names = {value: name[5:].lower() for name, value in vars(FieldDescriptor).items() if name.startswith("TYPE_")}
    inner = field.message_type or field.enum_type
    if field.message_type and inner.GetOptions().map_entry:
        return "map<{}, {}>".format(*(written(part) for part in inner.fields))
    plain = names[field.type]
    if inner:
        plain = inner.name if inner.full_name.startswith("pause.wire.") else inner.full_name
    return f"repeated {plain}" if field.is_repeated else plain


def test_the_generated_module_says_what_the_proto_file_says():
    assert len(declared(PROTO.read_text())) == 29
    assert generated() == declared(PROTO.read_text())
    assert wire.DESCRIPTOR.package == "pause.wire"
