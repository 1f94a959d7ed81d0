import asyncio
import gzip
import json
import logging
import tracemalloc
from dataclasses import dataclass, field

import numpy as np
import pytest
import tensorflow as tf
from grpc import StatusCode
from starlette.testclient import TestClient
from tensorflow.core.framework import types_pb2
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow_serving.apis import get_model_metadata_pb2, predict_pb2

from serving.server.api import rest
from serving.server.api.inference import ExampleInference
from serving.server.api.status import Failure
from serving.server.metrics import Metrics

PREDICT = "/v1/models/pause:predict"
PAGE = "/monitoring/prometheus/metrics"


@dataclass
class Version:
    version: int
    state: str
    code: StatusCode = StatusCode.OK
    message: str = ""


class Models:
    """Stands in for the life cycle of versions."""

    def __init__(self):
        self.asked = []

    def status(self, name, version=None, label=None):
        self.asked.append((name, version, label))
        if name != "pause":
            raise Failure(StatusCode.NOT_FOUND, f"model {name!r} is not known")
        return [Version(4, "END", StatusCode.DATA_LOSS, "half a file"), Version(3, "AVAILABLE")]


@dataclass
class Predictor:
    """Stands in for the model: a text's vector is its length, and its length doubled."""

    error: Exception | None = None
    hangs: bool = False
    was_cancelled: bool = False
    asked: list[predict_pb2.PredictRequest] = field(default_factory=list)

    async def predict(self, request, compact):
        assert compact  # what is read again at once is not written number by number
        self.asked.append(request)
        if self.error:
            raise self.error
        try:
            if self.hangs:
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        texts = list(request.inputs["text"].string_val)
        response = predict_pb2.PredictResponse()
        if request.model_spec.signature_name == "contract":
            response.outputs["contract"].CopyFrom(tf.make_tensor_proto([b"{}"] * len(texts)))
        else:
            vectors = np.array([[len(text), 2 * len(text)] for text in texts], np.float32)
            response.outputs["embedding"].CopyFrom(tf.make_tensor_proto(vectors))
            response.outputs["model"].CopyFrom(tf.make_tensor_proto([b"abc"] * len(texts)))
        return response

    def metadata(self, request):
        if request.model_spec.name != "pause":
            raise Failure(StatusCode.NOT_FOUND, f"model {request.model_spec.name!r} is not known")
        assert list(request.metadata_field) == ["signature_def"]
        text = {"text": meta_graph_pb2.TensorInfo(dtype=types_pb2.DT_STRING, name="text:0")}
        vector = {"vector": meta_graph_pb2.TensorInfo(dtype=types_pb2.DT_FLOAT, name="vector:0")}
        one = meta_graph_pb2.SignatureDef(inputs=text, outputs=vector, method_name="tensorflow/serving/predict")
        known = get_model_metadata_pb2.SignatureDefMap(signature_def={"serving_default": one, "contract": one})
        response = get_model_metadata_pb2.GetModelMetadataResponse()
        response.model_spec.name, response.model_spec.version.value = "pause", 3
        response.metadata["signature_def"].Pack(known)
        return response


@pytest.fixture
def models():
    return Models()


@pytest.fixture
def predictor():
    return Predictor()


@pytest.fixture
def metrics():
    metrics = Metrics()
    metrics.version("pause", 3, "AVAILABLE", "abc")
    return metrics


def app_of(models, predictor, metrics, metrics_path, timeout_seconds):
    return rest.create_app(
        models, predictor, ExampleInference(predictor, False), metrics, metrics_path, timeout_seconds
    )


@pytest.fixture
def client(models, predictor, metrics):
    return TestClient(app_of(models, predictor, metrics, PAGE, 30))


def error(response, status):
    """The message of an answer in the form that errors have."""
    assert (response.status_code, response.headers["content-type"]) == (status, "application/json")
    assert list(response.json()) == ["error"]
    return response.json()["error"]


# predict


def test_rows_are_answered_as_predictions_and_columns_as_outputs(client):
    rows = client.post(PREDICT, json={"instances": ["ab", "abc"]})
    assert (rows.status_code, rows.headers["content-type"]) == (200, "application/json")
    assert rows.json() == {
        "predictions": [{"embedding": [2, 4], "model": "abc"}, {"embedding": [3, 6], "model": "abc"}]
    }
    columns = client.post(PREDICT, json={"inputs": {"text": ["ab", "abc"]}})
    assert columns.json() == {"outputs": {"embedding": [[2, 4], [3, 6]], "model": ["abc", "abc"]}}


def test_another_signature_is_asked_for_by_name(client, predictor):
    answer = client.post(PREDICT, json={"signature_name": "contract", "instances": ["a"]})
    assert answer.json() == {"predictions": ["{}"]}
    assert predictor.asked[0].model_spec.signature_name == "contract"


@pytest.mark.parametrize(
    ("path", "version", "label"),
    [
        ("/v1/models/pause:predict", None, None),
        ("/v1/models/pause/versions/3:predict", 3, None),
        ("/v1/models/pause/versions/0:predict", 0, None),
        (f"/v1/models/pause/versions/{'0' * 30}3:predict", 3, None),
        ("/v1/models/pause/labels/stable:predict", None, "stable"),
        ("/V1/Models/pause/Labels/st%61ble%2Fa:Predict", None, "stable/a"),
        ("/v1/models/p%61use:predict", None, None),
    ],
)
def test_the_path_names_model_version_and_label(client, predictor, path, version, label):
    assert client.post(path, json={"instances": ["a"]}).status_code == 200
    spec = predictor.asked[0].model_spec
    assert spec.name == "pause"
    assert (spec.version.value if spec.HasField("version") else None) == version
    assert (spec.version_label if spec.HasField("version_label") else None) == label


def test_no_content_type_is_insisted_upon(client):
    body = b'{"instances": ["a"]}'
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        assert client.post(PREDICT, content=body, headers={"Content-Type": kind}).status_code == 200


def test_a_gzipped_body_is_unzipped(client):
    zipped = gzip.compress(b'{"instances": ["abc"]}')
    answer = client.post(PREDICT, content=zipped, headers={"Content-Encoding": "gzip"})
    assert answer.json()["predictions"][0]["embedding"] == [3, 6]
    assert "gzip" in error(client.post(PREDICT, content=b"{}", headers={"Content-Encoding": "gzip"}), 400)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"instances": [1]}, "takes strings"),
        ({"instances": []}, "empty"),
        ({"instances": ["a"], "inputs": ["a"]}, "both"),
        ({"instances": ["a"], "signature_name": "other"}, "there are: contract, serving_default"),
        ([], "JSON object"),
    ],
)
def test_a_bad_request_never_reaches_the_model(client, predictor, document, said):
    assert said in error(client.post(PREDICT, json=document), 400)
    assert predictor.asked == []


def test_an_unknown_model_is_not_found(client):
    assert "'other'" in error(client.post("/v1/models/other:predict", json={"instances": ["a"]}), 404)
    assert "'other'" in error(client.get("/v1/models/other"), 404)
    assert "'other'" in error(client.get("/v1/models/other/metadata"), 404)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (StatusCode.CANCELLED, 499),
        (StatusCode.UNKNOWN, 500),
        (StatusCode.INVALID_ARGUMENT, 400),
        (StatusCode.DEADLINE_EXCEEDED, 504),
        (StatusCode.NOT_FOUND, 404),
        (StatusCode.ALREADY_EXISTS, 409),
        (StatusCode.PERMISSION_DENIED, 403),
        (StatusCode.RESOURCE_EXHAUSTED, 429),
        (StatusCode.FAILED_PRECONDITION, 400),
        (StatusCode.ABORTED, 409),
        (StatusCode.OUT_OF_RANGE, 400),
        (StatusCode.UNIMPLEMENTED, 501),
        (StatusCode.INTERNAL, 500),
        (StatusCode.UNAVAILABLE, 503),
        (StatusCode.DATA_LOSS, 500),
        (StatusCode.UNAUTHENTICATED, 401),
    ],
)
def test_a_failure_has_the_http_status_that_tensorflow_serving_gives_it(client, predictor, code, status):
    predictor.error = Failure(code, 'said "so"')
    assert error(client.post(PREDICT, json={"instances": ["a"]}), status) == 'said "so"'


def test_what_nobody_foresaw_is_logged_and_kept_from_the_client(client, predictor, metrics, caplog):
    predictor.error = ZeroDivisionError("secret")
    with caplog.at_level(logging.ERROR, logger=rest.__name__):
        assert "secret" not in error(client.post(PREDICT, json={"instances": ["a"]}), 500)
    assert "ZeroDivisionError: secret" in caplog.text
    assert b'request_count{model_name="pause",status="INTERNAL"} 1.0' in metrics.exposition()


def test_a_request_that_takes_too_long_is_given_up(models, predictor, metrics):
    predictor.hangs = True
    client = TestClient(app_of(models, predictor, metrics, None, 0.05))
    assert "0.05 seconds" in error(client.post(PREDICT, json={"instances": ["a"]}), 504)
    assert predictor.was_cancelled
    assert b'request_count{model_name="pause",status="DEADLINE_EXCEEDED"} 1.0' in metrics.exposition()


# the size of a body


def test_a_body_up_to_the_limit_is_taken_and_one_byte_more_is_not(client, monkeypatch):
    body = b'{"instances": ["abc"]}'
    monkeypatch.setattr(rest, "BODY_BYTES", len(body))
    assert client.post(PREDICT, content=body).status_code == 200
    assert "bytes" in error(client.post(PREDICT, content=body + b" "), 413)
    assert client.post(PREDICT, content=body).status_code == 200


def test_the_limit_is_that_of_the_grpc_side_and_a_zip_bomb_does_not_get_round_it(client):
    assert rest.BODY_BYTES == 32 * 2**20
    bomb = gzip.compress(b" " * (rest.BODY_BYTES + 1))
    assert len(bomb) < 100_000
    assert str(rest.BODY_BYTES) in error(client.post(PREDICT, content=bomb, headers={"Content-Encoding": "gzip"}), 413)


def test_a_body_without_end_is_dropped_as_it_comes_and_read_only_so_far(models, predictor, metrics, monkeypatch):
    monkeypatch.setattr(rest, "BODY_BYTES", 2**20)
    monkeypatch.setattr(rest, "READ_BYTES", 2**24)
    received, sent = [], []

    async def receive():
        chunk = bytes(bytearray(2**16))
        received.append(len(chunk))
        return {"type": "http.request", "body": chunk, "more_body": True}

    async def send(message):
        sent.append(message)

    app = app_of(models, predictor, metrics, None, 30)
    path = {"path": PREDICT, "raw_path": PREDICT.encode(), "query_string": b""}
    tracemalloc.start()
    try:
        asyncio.run(app({"type": "http", "method": "POST", "headers": [], **path}, receive, send))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sent[0]["status"] == 413
    assert sum(received) == 2**24 + 2**16
    assert 2**20 < most < 2**22


# classify and regress


@pytest.mark.parametrize("method", ["classify", "regress"])
def test_a_model_that_only_predicts_says_so(client, predictor, method):
    path, examples = f"/v1/models/pause:{method}", {"examples": [{"text": "a"}]}
    kind = {"classify": "classification", "regress": "regression"}[method]
    assert error(client.post(path, json=examples), 400).startswith(f"No {kind} inputs found in SignatureDef: ")
    checked = ExampleInference(predictor, check_method_name=True)
    strict = TestClient(rest.create_app(Models(), predictor, checked, Metrics(), None, timeout_seconds=30))
    assert error(strict.post(path, json=examples), 400) == (
        f"Expected {kind} signature method_name to be tensorflow/serving/{method}. Was: tensorflow/serving/predict"
    )
    assert "examples" in error(client.post(path, json={"instances": ["a"]}), 400)
    assert "not JSON" in error(client.post(path, content=b"{"), 400)
    error(client.post(f"/v1/models/other:{method}", json={"examples": [{}]}), 404)
    assert predictor.asked == []


# status and metadata


def test_the_status_lists_versions_with_their_errors(client):
    assert client.get("/v1/models/pause").json() == {
        "model_version_status": [
            {
                "version": "4",
                "state": "END",
                "status": {"error_code": "DATA_LOSS", "error_message": "half a file"},
            },
            {"version": "3", "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}},
        ]
    }


def test_the_status_of_one_version_or_label_is_asked_for_by_path(client, models):
    for path in ("/v1/models/pause", "/v1/models/pause/versions/3", "/v1/models/pause/labels/stable"):
        assert client.get(path).status_code == 200
    assert models.asked == [("pause", None, None), ("pause", 3, None), ("pause", None, "stable")]


@pytest.mark.parametrize("place", ["", "/versions/3", "/labels/stable"])
def test_metadata_names_the_version_and_its_signatures(client, place):
    answer = client.get(f"/v1/models/pause{place}/metadata").json()
    assert answer["model_spec"] == {"name": "pause", "version": "3", "signature_name": ""}
    signatures = answer["metadata"]["signature_def"]["signature_def"]
    assert sorted(signatures) == ["contract", "serving_default"]
    assert signatures["serving_default"]["method_name"] == "tensorflow/serving/predict"
    assert signatures["serving_default"]["inputs"]["text"]["dtype"] == "DT_STRING"


# paths


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/v2/models/pause", 404),
        ("POST", "/predict", 404),
        ("GET", "/v1/", 400),
        ("GET", "/v1/models", 400),
        ("GET", "/v1/models/pause/", 400),
        ("GET", "/v1/models/pause/other", 400),
        ("GET", "/v1/models/pause/versions/x", 400),
        ("GET", "/v1/models/pause/versions/9223372036854775808", 400),
        ("GET", f"/v1/models/pause/versions/{'9' * 5000}", 400),
        ("GET", "/v1/models/pause/versions/3/labels/stable", 400),
        ("GET", "/v1/models/pause:predict", 400),
        ("POST", "/v1/models/pause", 400),
        ("POST", "/v1/models/pause:explain", 400),
        ("POST", "/v1/models:predict", 400),
        ("PUT", "/v1/models/pause:predict", 400),
        ("DELETE", "/v1/models/pause", 400),
        ("OPTIONS", "/v1/models/pause:predict", 400),
    ],
)
def test_a_path_that_is_none_is_refused(client, method, path, status):
    assert error(client.request(method, path), status)


def test_the_largest_version_there_is_can_be_asked_for(client, models):
    assert client.get("/v1/models/pause/versions/9223372036854775807").status_code == 200
    assert models.asked == [("pause", 2**63 - 1, None)]


# metrics


def test_requests_are_counted_by_how_they_ended(client, metrics):
    client.post(PREDICT, json={"instances": ["a"]})
    client.post(PREDICT, json={"instances": [1]})
    client.get("/v1/models/pause")
    client.get("/v1/models/other/metadata")
    page = metrics.exposition().decode()
    for api, model, status in [
        ("Predict", "pause", "OK"),
        ("Predict", "pause", "INVALID_ARGUMENT"),
        ("GetModelStatus", "pause", "OK"),
        ("GetModelMetadata", "unknown", "NOT_FOUND"),
    ]:
        labels = f'API="{api}",entrypoint="REST",model_name="{model}",status="{status}"'
        assert f":tensorflow:serving:request_latency_count{{{labels}}} 1.0\n" in page


def test_the_page_of_metrics_is_plain_text_where_it_is_wanted(client, models, predictor, metrics):
    answer = client.get(PAGE)
    assert (answer.status_code, answer.content) == (200, metrics.exposition())
    assert answer.headers["content-type"].startswith("text/plain")
    without = TestClient(app_of(models, predictor, metrics, None, 30))
    assert PAGE in error(without.get(PAGE), 404)


def test_errors_are_json_even_where_the_path_is_not_ascii(client):
    assert json.loads(client.get("/v1/models/ü/ü").content)["error"]
