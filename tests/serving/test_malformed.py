"""Requests that nobody should send: each gets the right status code, and the server is none the worse for it."""

import gzip
import json
import socket
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from random import Random

import grpc
import httpx
import pytest
import tensorflow as tf
from embedded import EmbeddedServer
from google.protobuf.message import DecodeError
from tensorflow_serving.apis import model_management_pb2, predict_pb2

PREDICT = "/tensorflow.serving.PredictionService/Predict"
RELOAD = "/tensorflow.serving.ModelService/HandleReloadConfigRequest"
STRING = tf.string.as_datatype_enum
MB = 2**20
SENDERS = 4
TIMEOUT = 30  # seconds: a request that hangs ends as DEADLINE_EXCEEDED, which is never the right code
GROWTH = 32 * MB  # that the server's memory may have after all requests, over what it had after the first fifth


@pytest.fixture(scope="module")
def target(base):
    """A server of its own: what others ask of a shared one would show in its memory."""
    with EmbeddedServer(base, "--xla_cpu_compilation_enabled=false", "--allow_reload_by_grpc") as server:
        yield server


@pytest.fixture(scope="module")
def channel(target):
    with grpc.insecure_channel(target.address, [("grpc.max_send_message_length", -1)]) as opened:
        yield opened


@pytest.fixture(scope="module")
def rest(target):
    with httpx.Client(base_url=target.rest, timeout=TIMEOUT, trust_env=False) as opened:
        yield opened


@pytest.fixture(autouse=True)
def unharmed(target, channel):
    """After every test a good request has the answer that it had before, and the log has no traceback."""

    def answered():
        return channel.unary_unary(PREDICT)(request_for([b"bank loans", b"beer"]).SerializeToString(), timeout=TIMEOUT)

    before = predict_pb2.PredictResponse.FromString(answered())
    yield
    assert predict_pb2.PredictResponse.FromString(answered()) == before
    assert "Traceback" not in target.log


def request_for(texts=(b"bank",), shape=None, **changes) -> predict_pb2.PredictRequest:
    """A good request, unless `shape` says otherwise than the texts, or `changes` in its model_spec are none."""
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "pause"
    for name, value in changes.items():
        setattr(request.model_spec, name, value)
    tensor = request.inputs["text"]
    tensor.dtype = STRING
    for size in [len(texts)] if shape is None else shape:
        tensor.tensor_shape.dim.add(size=size)
    tensor.string_val.extend(texts)
    return request


# gRPC: kinds of requests, and the code that each must have

KINDS = []  # (function of a Random that makes one, code)
LONG = "x" * 30_000  # a name that has no room in a status message


def kind(code):
    def add(make):
        KINDS.append((make, code))
        return make

    return add


@kind("INVALID_ARGUMENT")
def truncated(random):
    whole = request_for([random.randbytes(random.randrange(1, 100)) for _ in range(4)]).SerializeToString()
    return whole[: random.randrange(len(whole))]


@kind("INVALID_ARGUMENT")
def wrong_type(random):
    request = request_for()
    others = [dtype for dtype in range(30) if dtype != STRING]
    request.inputs["text"].dtype = random.choice([*others, 107, 999, -5])  # 107: a reference to a string
    return request


@kind("INVALID_ARGUMENT")
def numbers(random):
    request = request_for()
    request.inputs["text"].CopyFrom(tf.make_tensor_proto([random.random()] * random.randrange(1, 9)))
    return request


@kind("INVALID_ARGUMENT")
def scalar(_):
    return request_for(shape=[])


@kind("INVALID_ARGUMENT")
def matrix(random):
    return request_for(shape=[1] * random.randrange(2, 300))


@kind("INVALID_ARGUMENT")
def unknown_rank(random):
    request = request_for(shape=[1] * random.randrange(2))
    request.inputs["text"].tensor_shape.unknown_rank = True
    return request


@kind("INVALID_ARGUMENT")
def negative_dimension(random):
    return request_for(shape=[random.choice([-1, -2, -(2**63)])])


@kind("INVALID_ARGUMENT")
def huge_dimension(random):
    return request_for(shape=[random.choice([16_385, 2**31, 2**40, 2**63 - 1])])


@kind("INVALID_ARGUMENT")
def wrong_count(random):
    return request_for([b"bank"] * random.choice([0, 2, 3, 50]), shape=[random.choice([1, 4, 51, 16_384])])


@kind("NOT_FOUND")
def unknown_model(random):
    return request_for(name=random.choice(["Pause", "\0\n", "../pause", "/etc", LONG]))


@kind("INVALID_ARGUMENT")
def no_model_name(_):
    return request_for(name="")


@kind("NOT_FOUND")
def unknown_version(random):
    request = request_for()
    request.model_spec.version.value = random.choice([0, 2, -1, 2**63 - 1, -(2**63)])
    return request


@kind("INVALID_ARGUMENT")
def unknown_label(random):
    return request_for(version_label=random.choice(["", "stable", "ü" * 9_999]))


@kind("FAILED_PRECONDITION")
def unknown_signature(random):
    return request_for(signature_name=random.choice(["sing", "🚀" * 5_000, LONG]))


@kind("FAILED_PRECONDITION")
def private_signature(_):
    """It takes no inputs, and none are given."""
    spec = request_for(signature_name="__saved_model_init_op").model_spec
    return predict_pb2.PredictRequest(model_spec=spec)


@kind("INVALID_ARGUMENT")
def extra_input(random):
    request = request_for()
    request.inputs[random.choice(["", "texts", "TEXT", LONG])].CopyFrom(request.inputs["text"])
    return request


@kind("INVALID_ARGUMENT")
def other_input(random):
    request = extra_input(random)
    del request.inputs["text"]
    return request


@kind("INVALID_ARGUMENT")
def no_input(_):
    return predict_pb2.PredictRequest(model_spec=request_for().model_spec)


@kind("INVALID_ARGUMENT")
def no_model_spec(_):
    return predict_pb2.PredictRequest(inputs=request_for().inputs)


@kind("INVALID_ARGUMENT")
def strings_as_content(random):
    request = request_for([b"bank"] * random.randrange(2), shape=[1])
    request.inputs["text"].tensor_content = random.choice([b"\4bank", b"\xff" * 40])
    return request


@kind("INVALID_ARGUMENT")
def wrong_outputs(random):
    request = request_for()
    request.output_filter.extend(random.choice([["soul"], ["embedding", ""], ["model", "model"], [LONG]]))
    return request


def random_bytes(random) -> tuple[bytes, str]:
    """Some happen to be a message, and some of those name a model, which there is not."""
    some_spec = b"\x0a\x03\x0a\x01x"
    data = random.choice([b"", some_spec]) + random.randbytes(random.choice([0, 1, 2, 3, 4, 8, 50, 500, 5_000]))
    try:
        named = predict_pb2.PredictRequest.FromString(data).model_spec.name
    except DecodeError:
        named = False
    return data, "NOT_FOUND" if named else "INVALID_ARGUMENT"


def malformed(count: int) -> list[tuple[str, bytes, str]]:
    """Name, bytes and code of requests of every kind, a fifth of them random bytes."""
    random, made = Random(2021), []
    for _ in range(count):
        if random.random() < 0.2:
            made.append(("random_bytes", *random_bytes(random)))
        else:
            make, code = random.choice(KINDS)
            request = make(random)
            data = request if isinstance(request, bytes) else request.SerializeToString()
            made.append((make.__name__, data, code))
    return made


def large() -> list[tuple[str, bytes, str]]:
    """Few, since they are large, or would be if the server believed them."""
    values = request_for([b""] * 2 * MB, shape=[1]).SerializeToString()
    dimensions = request_for(shape=[0] * 2 * MB).SerializeToString()
    return [
        ("64 MB", request_for([b"x" * 64 * MB]).SerializeToString(), "RESOURCE_EXHAUSTED"),
        ("64 MB of bytes", bytes(64 * MB), "RESOURCE_EXHAUSTED"),
        ("a text of 30 MB", request_for([b"a " * 15 * MB]).SerializeToString(), "INVALID_ARGUMENT"),
        ("16 GB", request_for([b"x" * MB], shape=[16_384]).SerializeToString(), "INVALID_ARGUMENT"),
        ("2 million values", values, "INVALID_ARGUMENT"),
        ("2 million dimensions", dimensions, "INVALID_ARGUMENT"),
    ]


def code_of(channel, data, method=PREDICT, **options) -> str:
    try:
        channel.unary_unary(method)(data, timeout=TIMEOUT, **options)
    except grpc.RpcError as error:
        return error.code().name
    return "OK"


def lowest_memory(server) -> int:
    """Within some seconds: a message of 64 MB is let go of a moment after its answer."""
    readings = []
    for _ in range(30):
        readings.append(server.memory())
        time.sleep(0.1)
    return min(readings)


def test_ten_thousand_malformed_requests_get_their_codes_and_leave_memory_flat(target, channel):
    requests, few = malformed(10_000), large()
    assert {name for name, _, _ in requests} == {"random_bytes", *(make.__name__ for make, _ in KINDS)}
    lucky = Counter(code for name, _, code in requests if name == "random_bytes")
    assert min(lucky["NOT_FOUND"], lucky["INVALID_ARGUMENT"]) > 5
    wrong, readings, log = Counter(), [], target.log

    def send(request):
        name, data, code = request
        found = code_of(channel, data)
        wrong[name, code, found] += found != code

    with ThreadPoolExecutor(SENDERS) as pool:
        # Each of the server's threads keeps what its largest message took: the large ones must have met them all.
        for part, times in ((requests[:2_000], 6), (requests[2_000:], 1)):
            list(pool.map(send, part))
            for request in few * times:
                send(request)
            readings.append(lowest_memory(target))
    assert not +wrong
    assert readings[1] - readings[0] < GROWTH
    assert target.log == log


def test_a_message_that_unpacks_to_64_mb_is_refused(channel):
    data = request_for([b"x" * 64 * MB]).SerializeToString()
    assert code_of(channel, data, compression=grpc.Compression.Gzip) == "RESOURCE_EXHAUSTED"


def test_a_reload_without_a_list_or_from_another_host_changes_nothing(channel):
    elsewhere = model_management_pb2.ReloadConfigRequest()
    model = elsewhere.config.model_config_list.config.add(name="pause", base_path="file://elsewhere/pause")
    model.model_platform = "tensorflow"
    for data in (b"", b"\xff", b"\x0a\x00", elsewhere.SerializeToString()):
        assert code_of(channel, data, RELOAD) == "INVALID_ARGUMENT"


def test_bytes_that_are_no_protocol_end_their_connection(target):
    random = Random(2021)
    for port in (target.port, target.rest_port):
        for size in (1, 20, 100, 10_000):
            with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT) as connection:
                try:
                    connection.sendall(random.randbytes(size))
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(4096):  # what the server says before it hangs up
                        pass
                except OSError as error:  # it may hang up before we have finished
                    assert not isinstance(error, TimeoutError)


# REST: bodies, and the status that each must have

GOOD = {"instances": ["bank loans", {"b64": "YmVlcg=="}]}
WRONG_DOCUMENTS = [
    {}, {"instances": []}, {"instances": None}, {"instances": 7}, {"instances": "bank"}, {"instances": {"text": "a"}},
    {"instances": [1]}, {"instances": [None]}, {"instances": [True, "a"]}, {"instances": [{}]},
    {"instances": [{"words": "a"}]}, {"instances": [{"text": "a", "words": "a"}]}, {"instances": [{"text": 1.5}]},
    {"instances": [["a", "b"]]}, {"instances": ["a", ["b"]]}, {"instances": [[], ["b"]]}, {"instances": ["a", {}]},
    {"instances": ["a"], "inputs": ["a"]}, {"inputs": "a"}, {"inputs": {}}, {"inputs": {"text": {"b64": 1}}},
    {"inputs": {"text": [{"b64": "ü"}]}}, {"inputs": [{"b64": "====="}]}, {"inputs": ["a"] * 16_385},
    {"signature_name": 7, "instances": ["a"]}, {"signature_name": "sing", "instances": ["a"]},
]  # fmt: skip
NESTED = [
    before + b"[" * levels + b"]" * levels + after
    for before, after in (
        (b"", b""),
        (b'{"inputs":', b"}"),
        (b'{"instances":{"a":', b"}}"),
        (b'{"signature_name":', b"}"),
    )
    for levels in (200, 300, 1_000, 5_000)
]
WRONG_PATHS = [
    ("POST", "/v1/models/nobody:predict", 404), ("POST", "/v1/models/pause/versions/987:predict", 404),
    ("POST", "/v1/models/pause/labels/stable:predict", 400), ("POST", "/v1/models/pause:guess", 400),
    ("POST", "/v1/models/pause/versions/9999999999999999999:predict", 400), ("POST", "/v1/models/%00%ff:predict", 404),
    ("DELETE", "/v1/models/pause", 400), ("GET", "/v1/models/pause:predict", 400), ("GET", "/v2/models", 404),
]  # fmt: skip


def bodies(count: int) -> list[tuple[bytes, dict[str, str]]]:
    """Bodies with their headers, all of them to be answered with 400."""
    random, made = Random(2021), []
    whole = json.dumps(GOOD).encode()
    for _ in range(count):
        cut = whole[: random.randrange(len(whole))]
        body, headers = random.choice([
            (random.randbytes(random.randrange(300)), {}),
            (cut, {}),
            (gzip.compress(cut), {"Content-Encoding": "gzip"}),
            (whole, {"Content-Encoding": "gzip"}),
            (json.dumps(random.choice(WRONG_DOCUMENTS)).encode(), {}),
            (random.choice(NESTED), {}),
        ])  # fmt: skip
        made.append((body, headers))
    return made


def test_malformed_bodies_are_400_with_a_reason_and_leave_memory_flat(target, rest):
    requests, wrong, readings = bodies(1_000), [], []
    packed = gzip.compress(bytes(64 * MB))

    def send(request):
        body, headers = request
        response = rest.post("/v1/models/pause:predict", content=body, headers=headers)
        if response.status_code != 400 or not response.json()["error"]:
            wrong.append((body[:80], headers, response.status_code))

    with ThreadPoolExecutor(SENDERS) as pool:
        for part in (requests[:200], requests[200:]):
            list(pool.map(send, part))
            for body, headers in ((bytes(64 * MB), {}), (packed, {"Content-Encoding": "gzip"})):
                assert rest.post("/v1/models/pause:predict", content=body, headers=headers).status_code == 413
            readings.append(target.memory())
    assert wrong == []
    assert readings[1] - readings[0] < GROWTH
    assert len(rest.post("/v1/models/pause:predict", json=GOOD).json()["predictions"]) == 2


@pytest.mark.parametrize(("method", "path", "status"), WRONG_PATHS)
def test_a_path_that_leads_nowhere_has_its_status(rest, method, path, status):
    response = rest.request(method, path, json=GOOD)
    assert response.status_code == status and response.json()["error"]
