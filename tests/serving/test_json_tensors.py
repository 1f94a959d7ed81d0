import base64
import json

import numpy as np
import pytest
import tensorflow as tf
from grpc import StatusCode
from tensorflow.core.framework import types_pb2
from tensorflow.core.protobuf import meta_graph_pb2

from serving.server.api.json_tensors import Layout, parse, read_examples, read_inputs, signature_name, write_outputs
from serving.server.api.status import Failure


def signature(*names, dtype=types_pb2.DT_STRING):
    return meta_graph_pb2.SignatureDef(inputs={name: meta_graph_pb2.TensorInfo(dtype=dtype) for name in names})


TEXT, PAIR = signature("text"), signature("left", "right")


def read(document, signature=TEXT):
    """Values by input name as nested lists, and the layout."""
    tensors, layout = read_inputs(document, signature)
    return {name: tf.make_ndarray(tensor).tolist() for name, tensor in tensors.items()}, layout


def refusal(work, *arguments):
    with pytest.raises(Failure) as caught:
        work(*arguments)
    return caught.value.code, caught.value.message


def refused(document, signature=TEXT):
    code, message = refusal(read_inputs, document, signature)
    assert code == StatusCode.INVALID_ARGUMENT
    return message


def tensors(**values):
    return {name: tf.make_tensor_proto(value) for name, value in values.items()}


def written(layout, **values):
    return json.loads(write_outputs(tensors(**values), layout))


# what is asked


@pytest.mark.parametrize(
    ("document", "layout"),
    [
        ({"instances": ["a", "b"]}, Layout.ROWS),
        ({"instances": [{"text": "a"}, {"text": "b"}]}, Layout.ROWS),
        ({"inputs": ["a", "b"]}, Layout.COLUMNS),
        ({"inputs": {"text": ["a", "b"]}}, Layout.COLUMNS),
        ({"inputs": {"text": ["a", "b"], "other": 1}}, Layout.COLUMNS),
    ],
)
def test_one_input_may_be_named_or_not_in_rows_and_in_columns(document, layout):
    assert read(document) == ({"text": [b"a", b"b"]}, layout)


def test_several_inputs_are_named_in_rows_and_in_columns():
    rows = {"instances": [{"left": "a", "right": "b"}, {"left": "c", "right": "d"}]}
    columns = {"inputs": {"left": ["a", "c"], "right": ["b", "d"]}}
    assert read(rows, PAIR)[0] == read(columns, PAIR)[0] == {"left": [b"a", b"c"], "right": [b"b", b"d"]}
    assert "'left', 'right'" in refused({"instances": ["a"]}, PAIR)
    assert "'left', 'right'" in refused({"inputs": ["a"]}, PAIR)


def test_the_tensor_has_the_type_shape_and_values_of_the_nested_list():
    tensor = read_inputs({"inputs": [["a", "b", "c"], ["d", "e", "f"]]}, TEXT)[0]["text"]
    assert tensor.dtype == types_pb2.DT_STRING
    assert [dim.size for dim in tensor.tensor_shape.dim] == [2, 3]
    assert list(tensor.string_val) == [b"a", b"b", b"c", b"d", b"e", b"f"]


@pytest.mark.parametrize(("value", "shape"), [("a", []), ([], [0]), ([[], []], [2, 0]), ([["a"]], [1, 1])])
def test_a_column_may_be_of_any_shape(value, shape):
    tensor = read_inputs({"inputs": value}, TEXT)[0]["text"]
    assert [dim.size for dim in tensor.tensor_shape.dim] == shape


@pytest.mark.parametrize("encoded", ["/wD+", "/w D+\n"])
def test_bytes_come_in_base64_anywhere_a_string_does(encoded):
    raw = b"\xff\x00\xfe"
    for document in ({"instances": [{"b64": encoded}]}, {"instances": [{"text": {"b64": encoded}}]}):
        assert read(document)[0] == {"text": [raw]}
    assert read({"inputs": {"b64": encoded}})[0] == {"text": raw}


def test_base64_may_come_without_its_padding_and_not_with_other_characters():
    assert read({"inputs": [{"b64": "YQ"}, {"b64": "YQ=="}]})[0] == {"text": [b"a", b"a"]}
    for wrong in ("Y", "Y*Q==", "_w=="):
        assert "not base64" in refused({"inputs": [{"b64": wrong}]})


def test_text_goes_on_as_utf8():
    assert read({"inputs": ["Köln 東京 \U0001f600"]})[0] == {"text": ["Köln 東京 \U0001f600".encode()]}


@pytest.mark.parametrize("value", [1, 1.5, True, None, {"b64": 1}, {"b64": "YQ==", "more": 1}, {"other": "a"}])
def test_what_is_no_string_is_quoted_in_its_refusal(value):
    assert json.dumps(value, separators=(",", ":")) in refused({"inputs": ["a", value]})


def test_a_number_among_named_rows_is_refused_too():
    assert "got 7" in refused({"instances": [{"text": "a"}, {"text": 7}]})


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({}, "neither"),
        ({"instances": ["a"], "inputs": ["a"]}, "both"),
        ({"instances": []}, "empty"),
        ({"instances": "a"}, 'must be a list, got "a"'),
        ({"instances": {"text": "a"}}, "must be a list"),
        ({"instances": [{"text": "a"}, "b"]}, 'instances[1] is "b"'),
        ({"instances": ["a", {"text": "b"}]}, "instances[1]"),
        ({"instances": [{"txt": "a"}]}, "'text', got 'txt'"),
        ({"instances": [{}]}, "'text', got none"),
        ({"instances": [{"text": "a", "more": "b"}]}, "got 'more', 'text'"),
        ({"instances": [["a"], ["b", "c"]]}, "lists of 1 and 2 at depth 1"),
        ({"instances": ["a", ["b"]]}, "a value stands beside a list at depth 1"),
        ({"inputs": {"txt": ["a"]}}, "'text' is missing"),
        ({"inputs": [[["a"], ["b"]], [["c"]]]}, "lists of 1 and 2 at depth 1"),
    ],
)
def test_a_malformed_request_is_told_what_is_wrong(document, said):
    assert said in refused(document)


def test_nesting_deeper_than_the_stack_is_only_a_strange_shape():
    body = b'{"inputs": ' + b"[" * 1020 + b'"a"' + b"]" * 1020 + b"}"
    tensor = read_inputs(parse(body), TEXT)[0]["text"]
    assert len(tensor.tensor_shape.dim) == 1020
    assert refusal(parse, body.replace(b"[", b"[[").replace(b"]", b"]]"))[0] == StatusCode.INVALID_ARGUMENT


def test_a_long_value_is_cut_in_its_refusal():
    assert len(refused({"instances": "a" * 10_000})) < 200


def test_an_input_that_is_no_string_is_not_implemented():
    code, message = refusal(read_inputs, {"inputs": [1.0]}, signature("weights", dtype=types_pb2.DT_FLOAT))
    assert code == StatusCode.UNIMPLEMENTED
    assert "'weights' is DT_FLOAT" in message


def test_a_signature_without_inputs_takes_no_request():
    assert "takes no inputs" in refused({"inputs": ["a"]}, signature())


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b'"a"', b"null", b'{"a": "\xff"}', b'{"a": "\\ud800"}', b"\x80"])
def test_a_body_that_is_no_json_object_is_refused(body):
    code, message = refusal(parse, body)
    assert code == StatusCode.INVALID_ARGUMENT
    assert message.startswith("the body ")


def test_the_signature_is_named_or_left_out_and_a_string():
    assert signature_name({"signature_name": "contract"}) == "contract"
    assert signature_name({}) == ""
    assert "got 3" in refusal(signature_name, {"signature_name": 3})[1]


@pytest.mark.parametrize("document", [{}, {"examples": {}}, {"examples": []}, {"examples": [{}, 1]}])
def test_examples_are_a_list_of_objects(document):
    assert read_examples({"examples": [{"a": 1}]}, "classify") == [{"a": 1}]
    assert refusal(read_examples, document, "classify")[0] == StatusCode.INVALID_ARGUMENT


# what is answered


def test_several_outputs_are_objects_by_row_or_by_column():
    outputs = {"embedding": np.array([[1, 0.5], [0, 2]], np.float32), "model": [b"abc", b"abc"]}
    assert written(Layout.ROWS, **outputs) == {
        "predictions": [{"embedding": [1, 0.5], "model": "abc"}, {"embedding": [0, 2], "model": "abc"}]
    }
    assert written(Layout.COLUMNS, **outputs) == {"outputs": {"embedding": [[1, 0.5], [0, 2]], "model": ["abc", "abc"]}}


def test_one_output_is_not_wrapped():
    assert written(Layout.ROWS, contract=[b"a", b"b"]) == {"predictions": ["a", "b"]}
    assert written(Layout.COLUMNS, contract=[b"a", b"b"]) == {"outputs": ["a", "b"]}
    assert written(Layout.COLUMNS, number=np.float32(0.5)) == {"outputs": 0.5}


def test_a_float_is_written_as_short_as_reads_back_the_same():
    third = np.float32(1) / np.float32(3)
    assert repr(float(third)) == "0.3333333432674408"  # what it would be as a double
    assert write_outputs(tensors(x=[third, 0.1, 1]), Layout.ROWS) == b'{"predictions":[0.33333334,0.1,1.0]}'
    values = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    back = written(Layout.COLUMNS, x=values)["outputs"]
    assert np.array_equal(np.array(back, np.float32), values)


def test_no_number_is_null_since_json_has_no_word_for_it():
    values = np.array([1, np.nan, np.inf], np.float32)
    assert written(Layout.ROWS, x=values) == {"predictions": [1, None, None]}


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int64, np.int32, np.uint8, np.bool_])
def test_other_numbers_are_written_by_row_and_by_column(dtype):
    values = np.array([[1, 0]], dtype)
    assert written(Layout.ROWS, x=values) == {"predictions": [[1, 0]]}
    assert written(Layout.COLUMNS, x=values[0]) == {"outputs": [1, 0]}


def test_an_output_named_bytes_is_base64_and_a_text_that_is_no_utf8_too():
    binary, text = b"\xff\x00", "ü".encode()
    assert written(Layout.ROWS, picture_bytes=[text]) == {"predictions": [{"b64": base64.b64encode(text).decode()}]}
    mixed = written(Layout.ROWS, picture=[text, binary])["predictions"]
    assert mixed == ["ü", {"b64": base64.b64encode(binary).decode()}]


def test_texts_keep_their_shape():
    assert written(Layout.COLUMNS, x=[[b"a", b"b"], [b"c", b"d"]]) == {"outputs": [["a", "b"], ["c", "d"]]}
    assert written(Layout.COLUMNS, x=b"a") == {"outputs": "a"}


def test_an_empty_batch_is_an_empty_list():
    empty = np.zeros((0, 3), np.float32)
    assert written(Layout.COLUMNS, x=empty) == {"outputs": []}
    assert written(Layout.ROWS, x=empty) == {"predictions": []}


@pytest.mark.parametrize(
    "outputs", [{}, {"x": np.float32(1)}, {"x": [1.0], "y": [1.0, 2.0]}, {"x": [1.0], "y": np.float32(1)}, {"x": [1j]}]
)
def test_outputs_that_make_no_rows_are_refused(outputs):
    assert refusal(write_outputs, tensors(**outputs), Layout.ROWS)[0] == StatusCode.INVALID_ARGUMENT
