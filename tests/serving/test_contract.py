"""What any client of TensorFlow Serving may rely on, over gRPC and REST, in the messages of tensorflow_serving.apis.

Runs against the embedded server, and where TF_SERVING_ADDRESS (and TF_SERVING_REST_ADDRESS) name one, against a
`tensorflow_model_server` that serves a PAUSE model as `pause`."""

import base64
import json
import os
from contextlib import closing
from dataclasses import dataclass

import grpc
import httpx
import numpy as np
import pytest
import tensorflow as tf
from google.protobuf.wrappers_pb2 import Int64Value
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    inference_pb2,
    model_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
    regression_pb2,
)

from model.contract import Contract
from serving.client import EmbeddingClient
from serving.endpoint.channel import Endpoint
from serving.endpoint.connection import COMPACT
from serving.endpoint.messages import predict_request

TEXTS = ["bank loans", "", "beer ale lager hops malt " * 9, "car 🚗 engine", "bank"]
REMOTE = os.environ.get("TF_SERVING_ADDRESS")


@dataclass(frozen=True)
class Target:
    address: str
    rest: str | None


@pytest.fixture(scope="module", params=["embedded", "tensorflow_model_server"] if REMOTE else ["embedded"])
def target(request):
    if request.param == "embedded":
        server = request.getfixturevalue("server")
        return Target(server.address, server.rest)
    rest = os.environ.get("TF_SERVING_REST_ADDRESS")
    return Target(REMOTE, f"http://{rest}" if rest else None)


@pytest.fixture(scope="module")
def channel(target):
    with grpc.insecure_channel(target.address) as opened:
        yield opened


@pytest.fixture(scope="module")
def prediction(channel):
    return prediction_service_pb2_grpc.PredictionServiceStub(channel)


@pytest.fixture(scope="module")
def model_service(channel):
    return model_service_pb2_grpc.ModelServiceStub(channel)


@pytest.fixture(scope="module")
def rest(target):
    if target.rest is None:
        pytest.skip("TF_SERVING_REST_ADDRESS is not set: REST of that server is not tested")
    with httpx.Client(base_url=f"{target.rest}/v1/models", timeout=60, trust_env=False) as client:
        yield client


def spec(name="pause", signature="", **version) -> model_pb2.ModelSpec:
    return model_pb2.ModelSpec(name=name, signature_name=signature, **version)


def request_for(values, model_spec=None, name="text", dtype=tf.string, outputs=()) -> predict_pb2.PredictRequest:
    request = predict_pb2.PredictRequest(model_spec=model_spec or spec(), output_filter=outputs)
    request.inputs[name].CopyFrom(tf.make_tensor_proto(values, dtype))
    return request


def embed(prediction, texts) -> np.ndarray:
    return tf.make_ndarray(prediction.Predict(request_for(texts)).outputs["embedding"])


def refused(call, request) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as caught:
        call(request)
    return caught.value.code(), caught.value.details()


# Predict


@pytest.mark.parametrize("signature", ["", "serving_default"])
def test_every_text_gets_a_unit_vector_and_the_fingerprint_that_the_contract_names(prediction, signature):
    asked = prediction.Predict(request_for([b""], spec(signature="contract")))
    contract = Contract.from_json(asked.outputs["contract"].string_val[0])
    response = prediction.Predict(request_for(TEXTS, spec(signature=signature)))
    vectors = tf.make_ndarray(response.outputs["embedding"])
    assert vectors.shape == (len(TEXTS), contract.dimension) and vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    names = tf.make_ndarray(response.outputs["model"])
    assert names.shape == (len(TEXTS),) and set(names) == {contract.fingerprint.encode()}


def test_the_response_names_model_version_and_signature(prediction):
    found = prediction.Predict(request_for(["bank"])).model_spec
    assert (found.name, found.signature_name) == ("pause", "serving_default") and found.version.value >= 1


def test_a_text_has_one_vector_alone_among_others_and_in_any_order(prediction):
    together = embed(prediction, TEXTS * 40)
    for position, text in enumerate(TEXTS):
        alone = embed(prediction, [text])[0]
        assert np.abs(together[position::5] - alone).max() < 1e-5


def test_an_empty_batch_has_no_vectors(prediction):
    response = prediction.Predict(request_for(np.array([], object)))
    assert tf.make_ndarray(response.outputs["embedding"]).shape[0] == 0
    assert tf.make_ndarray(response.outputs["model"]).shape == (0,)


def test_only_the_outputs_asked_for_come_back(prediction):
    assert set(prediction.Predict(request_for(["a"], outputs=["model"])).outputs) == {"model"}


def test_one_value_stands_for_all_of_a_shape(prediction):
    request = request_for(["bank"])
    request.inputs["text"].tensor_shape.dim[0].size = 3
    vectors = tf.make_ndarray(prediction.Predict(request).outputs["embedding"])
    assert len(vectors) == 3 and np.abs(vectors - vectors[0]).max() < 1e-5


def test_a_version_can_be_asked_for_by_number(prediction):
    current = prediction.Predict(request_for(["bank"])).model_spec.version.value
    again = prediction.Predict(request_for(["bank"], spec(version=Int64Value(value=current))))
    assert again.model_spec.version.value == current


def test_bytes_that_are_no_utf8_are_encoded_all_the_same(prediction):
    assert np.isfinite(embed(prediction, [b"\xff\xfe bank"])).all()


WRONG = {
    "no model": (lambda: predict_pb2.PredictRequest(), "INVALID_ARGUMENT", "."),
    "unknown model": (lambda: request_for(["a"], spec("nobody")), "NOT_FOUND", "nobody"),
    "unknown version": (lambda: request_for(["a"], spec(version=Int64Value(value=987))), "NOT_FOUND", "987"),
    "unknown label": (lambda: request_for(["a"], spec(version_label="canary")), "INVALID_ARGUMENT", "canary"),
    "unknown signature": (lambda: request_for(["a"], spec(signature="sing")), "FAILED_PRECONDITION", "sing"),
    "unknown input": (lambda: request_for(["a"], name="words"), "INVALID_ARGUMENT", "words"),
    "no input": (lambda: predict_pb2.PredictRequest(model_spec=spec()), "INVALID_ARGUMENT", "text"),
    "wrong type": (lambda: request_for([1.5], dtype=tf.float32), "INVALID_ARGUMENT", "."),
    "scalar": (lambda: request_for("a"), "INVALID_ARGUMENT", "."),
    "matrix": (lambda: request_for([["a", "b"]]), "INVALID_ARGUMENT", "."),
    "unknown output": (lambda: request_for(["a"], outputs=["soul"]), "INVALID_ARGUMENT", "soul"),
    "output twice": (lambda: request_for(["a"], outputs=["model", "model"]), "INVALID_ARGUMENT", "model"),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_a_mistake_has_its_code_and_is_named(prediction, mistake):
    make, code, word = WRONG[mistake]
    found, details = refused(prediction.Predict, make())
    assert found.name == code
    assert word == "." or word in details
    assert np.isfinite(embed(prediction, ["bank"])).all()


# GetModelMetadata, GetModelStatus, health


def test_metadata_describes_the_signatures(prediction):
    request = get_model_metadata_pb2.GetModelMetadataRequest(model_spec=spec(), metadata_field=["signature_def"])
    response = prediction.GetModelMetadata(request)
    assert response.model_spec.name == "pause" and response.model_spec.version.value >= 1
    signatures = get_model_metadata_pb2.SignatureDefMap()
    assert response.metadata["signature_def"].Unpack(signatures)
    assert {"serving_default", "contract"} <= set(signatures.signature_def)
    default = signatures.signature_def["serving_default"]
    assert tf.as_dtype(default.inputs["text"].dtype) == tf.string
    assert [dim.size for dim in default.inputs["text"].tensor_shape.dim] == [-1]
    assert set(default.outputs) == {"embedding", "model"}


@pytest.mark.parametrize(("fields", "name", "code"), [
    ([], "pause", "INVALID_ARGUMENT"), (["weather"], "pause", "INVALID_ARGUMENT"),
    (["signature_def"], "nobody", "NOT_FOUND"),
])  # fmt: skip
def test_metadata_that_is_not_there_is_refused(prediction, fields, name, code):
    request = get_model_metadata_pb2.GetModelMetadataRequest(model_spec=spec(name), metadata_field=fields)
    assert refused(prediction.GetModelMetadata, request)[0].name == code


def test_the_status_says_available(prediction, model_service):
    current = prediction.Predict(request_for(["bank"])).model_spec.version.value
    for asked in (spec(), spec(version=Int64Value(value=current))):
        response = model_service.GetModelStatus(get_model_status_pb2.GetModelStatusRequest(model_spec=asked))
        found = {status.version: status for status in response.model_version_status}[current]
        assert found.state == get_model_status_pb2.ModelVersionStatus.AVAILABLE
        assert (found.status.error_code, found.status.error_message) == (0, "")


@pytest.mark.parametrize("asked", [spec("nobody"), spec(version=Int64Value(value=987))], ids=["model", "version"])
def test_the_status_of_what_is_not_there_is_not_found(model_service, asked):
    request = get_model_status_pb2.GetModelStatusRequest(model_spec=asked)
    assert refused(model_service.GetModelStatus, request)[0] is grpc.StatusCode.NOT_FOUND


def test_the_health_service_says_serving(server):  # tensorflow_model_server has none
    with grpc.insecure_channel(server.address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        for service in ("", "tensorflow.serving.PredictionService"):
            found = stub.Check(health_pb2.HealthCheckRequest(service=service))
            assert found.status == health_pb2.HealthCheckResponse.SERVING


# REST


def post(rest, body, path="/pause:predict", status=200):
    response = rest.post(path, content=body if isinstance(body, str) else json.dumps(body))
    assert response.status_code == status, response.text
    return response.json()


def test_rows_and_columns_give_the_vectors_of_grpc(rest, prediction):
    expected = embed(prediction, TEXTS)
    rows = post(rest, {"instances": TEXTS})["predictions"]
    assert np.abs(np.array([row["embedding"] for row in rows]) - expected).max() < 1e-5
    columns = post(rest, {"inputs": TEXTS})["outputs"]
    assert np.abs(np.array(columns["embedding"]) - expected).max() < 1e-5
    assert [row["model"] for row in rows] == columns["model"]


@pytest.mark.parametrize("body", [
    {"instances": [{"text": "bank"}]}, {"inputs": {"text": ["bank"]}},
    {"instances": [{"b64": base64.b64encode(b"bank").decode()}]},
    {"signature_name": "serving_default", "instances": ["bank"]},
])  # fmt: skip
def test_the_ways_to_write_one_text_agree(rest, prediction, body):
    answer = post(rest, body)
    found = answer["predictions"][0]["embedding"] if "predictions" in answer else answer["outputs"]["embedding"][0]
    assert np.abs(np.array(found) - embed(prediction, ["bank"])[0]).max() < 1e-5


def test_a_signature_with_one_output_is_not_wrapped_in_its_name(rest):
    (contract,) = post(rest, {"signature_name": "contract", "instances": [""]})["predictions"]
    assert Contract.from_json(contract).dimension > 0
    assert post(rest, {"signature_name": "contract", "inputs": [""]})["outputs"] == [contract]


def test_a_version_has_a_path_of_its_own(rest, prediction):
    current = prediction.Predict(request_for(["bank"])).model_spec.version.value
    assert len(post(rest, {"instances": ["bank"]}, f"/pause/versions/{current}:predict")["predictions"]) == 1
    (status,) = rest.get(f"/pause/versions/{current}").json()["model_version_status"]
    assert status == {
        "version": str(current), "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""},
    }  # fmt: skip


def test_rest_metadata_describes_the_signatures(rest):
    answer = rest.get("/pause/metadata").json()
    assert answer["model_spec"]["name"] == "pause" and int(answer["model_spec"]["version"]) >= 1
    text = answer["metadata"]["signature_def"]["signature_def"]["serving_default"]["inputs"]["text"]
    assert text["dtype"] == "DT_STRING" and text["tensor_shape"]["dim"][0]["size"] == "-1"


@pytest.mark.parametrize(("body", "path", "status"), [
    ("{", "/pause:predict", 400), ("[]", "/pause:predict", 400), ({}, "/pause:predict", 400),
    ({"instances": []}, "/pause:predict", 400), ({"instances": "bank"}, "/pause:predict", 400),
    ({"instances": [1]}, "/pause:predict", 400), ({"instances": [["a", "b"]]}, "/pause:predict", 400),
    ({"instances": [{"words": "a"}]}, "/pause:predict", 400),
    ({"instances": ["a"], "inputs": ["a"]}, "/pause:predict", 400),
    ({"instances": ["a"]}, "/nobody:predict", 404), ({"instances": ["a"]}, "/pause/versions/987:predict", 404),
])  # fmt: skip
def test_a_mistake_in_rest_has_its_status_and_says_error(rest, body, path, status):
    assert post(rest, body, path, status)["error"]


@pytest.mark.parametrize("path", ["/nobody", "/pause/versions/987"])
def test_rest_status_of_what_is_not_there_is_404(rest, path):
    response = rest.get(path)
    assert response.status_code == 404 and response.json()["error"]


# Classify, Regress and MultiInference, which a model that encodes texts has no signatures for

CLASSIFY, REGRESS = "tensorflow/serving/classify", "tensorflow/serving/regress"


def tasks(*given) -> inference_pb2.MultiInferenceRequest:
    """Of (model_spec, method)."""
    made = [inference_pb2.InferenceTask(model_spec=model_spec, method_name=method) for model_spec, method in given]
    return inference_pb2.MultiInferenceRequest(tasks=made)


NOT_PREDICT = {
    "Classify": [
        (spec(), "FAILED_PRECONDITION", "No classification inputs found in SignatureDef: "),
        (spec(signature="contract"), "FAILED_PRECONDITION", "No classification inputs found in SignatureDef: "),
        (spec(signature="sing"), "INVALID_ARGUMENT", "No signature was found with the name: sing"),
        (None, "INVALID_ARGUMENT", "Missing ModelSpec"),
        (spec(""), "INVALID_ARGUMENT", "ModelSpec has no name specified."),
        (spec("nobody"), "NOT_FOUND", ""),
        (spec(version=Int64Value(value=987)), "NOT_FOUND", ""),
    ],
    "Regress": [
        (spec(), "INVALID_ARGUMENT", "Expected one output Tensor."),
        (spec(signature="contract"), "FAILED_PRECONDITION", "No regression inputs found in SignatureDef: "),
        (spec(signature="sing"), "INVALID_ARGUMENT", "No signature was found with the name: sing"),
        (None, "INVALID_ARGUMENT", "Missing ModelSpec"),
        (spec("nobody"), "NOT_FOUND", ""),
    ],
}
ASKED = {
    "Classify": classification_pb2.ClassificationRequest,
    "Regress": regression_pb2.RegressionRequest,
}


@pytest.mark.parametrize("method", NOT_PREDICT)
def test_classify_and_regress_are_answered_as_for_any_model_without_their_signatures(prediction, method):
    for model_spec, code, words in NOT_PREDICT[method]:
        found, details = refused(getattr(prediction, method), ASKED[method](model_spec=model_spec))
        assert (found.name, details[: len(words)]) == (code, words)


@pytest.mark.parametrize(("request_", "code", "words"), [
    (tasks(), "INVALID_ARGUMENT", "ModelSpec has no name specified."),
    (tasks((spec("nobody"), CLASSIFY)), "NOT_FOUND", ""),
    (tasks((spec(), CLASSIFY)), "FAILED_PRECONDITION", "No classification inputs found in SignatureDef: "),
    (tasks((spec(), REGRESS)), "INVALID_ARGUMENT", "Expected one output Tensor."),
    (tasks((spec(), "tensorflow/serving/predict")), "UNIMPLEMENTED", "Unsupported signature method_name: "),
    (tasks((spec(signature="sing"), CLASSIFY)), "INVALID_ARGUMENT", "Requested signature not found in model graph: "),
    (tasks((spec(), CLASSIFY), (spec("other"), CLASSIFY)), "FAILED_PRECONDITION", "No classification inputs found"),
])  # fmt: skip
def test_several_inferences_at_once_are_answered_as_for_any_model_without_their_signatures(
    prediction, request_, code, words
):
    found, details = refused(prediction.MultiInference, request_)
    assert (found.name, details[: len(words)]) == (code, words)


def test_rest_answers_classify_and_regress_as_grpc_does(rest):
    for method, words in (("classify", "No classification inputs found"), ("regress", "Expected one output Tensor.")):
        said = post(rest, {"examples": [{"text": "a"}]}, f"/pause:{method}", 400)["error"]
        assert said.startswith(words)


# the fields that tensors are written in


def test_numbers_and_strings_are_in_the_fields_that_clients_read(prediction):
    outputs = prediction.Predict(request_for(TEXTS)).outputs
    vectors = outputs["embedding"]
    assert not vectors.tensor_content and vectors.dtype == tf.float32.as_datatype_enum
    assert len(vectors.float_val) == np.prod([dim.size for dim in vectors.tensor_shape.dim])
    assert not outputs["model"].tensor_content and len(outputs["model"].string_val) == len(TEXTS)


def test_no_vectors_are_no_numbers(prediction):
    vectors = prediction.Predict(request_for(np.array([], object))).outputs["embedding"]
    assert not vectors.tensor_content and not vectors.float_val


def test_whoever_asks_the_embedded_server_for_bytes_gets_the_same_vectors(server):
    answers = []
    for options in ([], [("grpc.primary_user_agent", COMPACT)]):
        with grpc.insecure_channel(server.address, options) as channel:
            answers.append(prediction_service_pb2_grpc.PredictionServiceStub(channel).Predict(request_for(TEXTS)))
    plain, compact = (answer.outputs["embedding"] for answer in answers)
    assert compact.tensor_content and not compact.float_val
    np.testing.assert_array_equal(tf.make_ndarray(compact), tf.make_ndarray(plain))


def test_our_own_client_asks_for_bytes_and_reads_either_form(server, prediction):
    with EmbeddingClient([server.address]) as client, closing(Endpoint([server.address], 10.0, 20.0, None)) as endpoint:
        vectors, _ = client.embed(TEXTS)
        answer = endpoint.predict(predict_request("pause", "serving_default", [b"bank"]))
    assert answer.outputs["embedding"].tensor_content
    assert np.abs(vectors - embed(prediction, TEXTS)).max() < 1e-5
