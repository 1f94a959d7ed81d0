"""Clients that know nothing of this project get from the embedded server what TensorFlow Serving would give them."""

import shutil
from base64 import b64encode
from pathlib import Path

import grpc
import numpy as np
import pytest
from foreign_clients import SOURCES, ask, go_client, min_tfs_client, write_descriptors
from real_servers import available
from tensorflow_serving.apis import get_model_metadata_pb2, model_service_pb2, prediction_service_pb2

from infra.local import processes
from infra.local.processes import Unavailable
from serving.client import EmbeddingClient

TEXTS = ["bank loans", "", "beer ale lager", "car 🚗 engine"]
PREDICTION = "/tensorflow.serving.PredictionService"
SPEC = {"name": "pause"}


@pytest.fixture(scope="module")
def expected(server):
    """By our own client."""
    with EmbeddingClient([server.address]) as client:
        return client.embed(TEXTS)


def test_min_tfs_client_reads_vectors_and_fingerprints(server, expected):
    python = available(min_tfs_client)
    found = ask([python, SOURCES / "min_tfs.py", "127.0.0.1", str(server.port)], TEXTS)
    vectors, fingerprints = expected
    assert np.abs(np.array(found["embedding"]) - vectors).max() < 1e-5
    assert (found["model"], found["version"]) == (fingerprints, 1)


@pytest.mark.parametrize(("ci", "outcome"), [("true", Unavailable), ("", pytest.skip.Exception)])
def test_a_client_that_cannot_be_made_is_named_and_fails_the_test_in_ci(monkeypatch, tmp_path, ci, outcome):
    monkeypatch.setattr(processes, "FOLDER", tmp_path)
    monkeypatch.setattr(shutil, "which", lambda name, path=None: None)
    monkeypatch.setenv("CI", ci)
    for make, tool in ((min_tfs_client, "`uv`"), (go_client, "`go`")):
        with pytest.raises(outcome, match=tool):
            available(make)


@pytest.fixture(scope="module")
def go(server, tmp_path_factory):
    """Asks a method of the server by the client in Go, which knows it from the public messages."""
    binary: Path = available(go_client)
    modules = (prediction_service_pb2, model_service_pb2, get_model_metadata_pb2)
    descriptors = write_descriptors(tmp_path_factory.mktemp("descriptors") / "serving.binpb", *modules)
    return lambda method, request: ask([binary, server.address, descriptors, method], request)


def text_tensor(texts):
    strings = [b64encode(text.encode()).decode() for text in texts]
    shape = {"dim": [{"size": str(len(texts))}]}
    return {"dtype": "DT_STRING", "tensorShape": shape, "stringVal": strings}


def test_a_client_in_go_reads_vectors_from_the_field_that_tensorflow_serving_fills(go, expected):
    answer = go(f"{PREDICTION}/Predict", {"modelSpec": SPEC, "inputs": {"text": text_tensor(TEXTS)}})
    assert answer["code"] == 0, answer["message"]
    embedding = answer["response"]["outputs"]["embedding"]
    assert embedding["dtype"] == "DT_FLOAT" and "tensorContent" not in embedding
    vectors = np.array(embedding["floatVal"]).reshape([int(dim["size"]) for dim in embedding["tensorShape"]["dim"]])
    assert np.abs(vectors - expected[0]).max() < 1e-5
    assert answer["response"]["modelSpec"] == {"name": "pause", "version": "1", "signatureName": "serving_default"}


def test_a_client_in_go_reads_the_signatures_and_the_state(go):
    answer = go(f"{PREDICTION}/GetModelMetadata", {"modelSpec": SPEC, "metadataField": ["signature_def"]})
    signatures = answer["response"]["metadata"]["signature_def"]["signatureDef"]
    assert signatures["serving_default"]["inputs"]["text"]["dtype"] == "DT_STRING"
    answer = go("/tensorflow.serving.ModelService/GetModelStatus", {"modelSpec": SPEC})
    (status,) = answer["response"]["model_version_status"]
    assert (status["version"], status["state"]) == ("1", "AVAILABLE")


EXAMPLES = {"exampleList": {"examples": [{"features": {"feature": {"text": {"bytesList": {"value": ["YQ=="]}}}}}]}}


@pytest.mark.parametrize(
    ("method", "request_", "code", "message"),
    [
        ("Classify", {"modelSpec": SPEC, "input": EXAMPLES}, "FAILED_PRECONDITION", "No classification inputs found"),
        ("Regress", {"modelSpec": SPEC, "input": EXAMPLES}, "INVALID_ARGUMENT", "Expected one output Tensor."),
        ("MultiInference", {"tasks": [], "input": EXAMPLES}, "INVALID_ARGUMENT", "ModelSpec has no name specified."),
        ("Predict", {"modelSpec": {"name": "nobody"}}, "NOT_FOUND", "nobody"),
    ],
)
def test_a_client_in_go_is_told_what_tensorflow_serving_would_tell_it(go, method, request_, code, message):
    answer = go(f"{PREDICTION}/{method}", request_)
    assert answer["code"] == getattr(grpc.StatusCode, code).value[0]
    assert message in answer["message"]
