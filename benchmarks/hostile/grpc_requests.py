"""Hostile requests over gRPC: what any byte of a message may be, and whatever a name or a path may aim at."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tensorflow.core.framework import types_pb2
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    inference_pb2,
    model_management_pb2,
    predict_pb2,
    regression_pb2,
)

PREDICTION, MODEL = "/tensorflow.serving.PredictionService", "/tensorflow.serving.ModelService"
METHODS = {
    f"{PREDICTION}/Predict": predict_pb2.PredictRequest,
    f"{PREDICTION}/GetModelMetadata": get_model_metadata_pb2.GetModelMetadataRequest,
    f"{PREDICTION}/Classify": classification_pb2.ClassificationRequest,
    f"{PREDICTION}/Regress": regression_pb2.RegressionRequest,
    f"{PREDICTION}/MultiInference": inference_pb2.MultiInferenceRequest,
    f"{MODEL}/GetModelStatus": get_model_status_pb2.GetModelStatusRequest,
    f"{MODEL}/HandleReloadConfigRequest": model_management_pb2.ReloadConfigRequest,
}
PREDICT = f"{PREDICTION}/Predict"
NAMES = [
    "",
    ".",
    "..",
    "/",
    "../pause",
    "/etc",
    "pause/1",
    "pause\0",
    "~root",
    "Pause",
    "%2e%2e",
    "ü" * 300,
    "x" * 30_000,
]


@dataclass(frozen=True)
class Grpc:
    """One request over gRPC, and what it aims at."""

    kind: str
    method: str
    data: bytes
    metadata: tuple[tuple[str, str | bytes], ...] = ()


@dataclass(frozen=True)
class Surroundings:
    """What a reload or a name may aim at: the base path that is served, and a folder that must stay as it is."""

    base: str
    victim: str


Make = Callable[[Random, Surroundings], Grpc]
KINDS: list[Make] = []
LARGE_KINDS: list[Make] = []  # few of these, so that many requests are sent in little time


def kind(kinds: list[Make]) -> Callable[[Make], Make]:
    def add(make: Make) -> Make:
        kinds.append(make)
        return make

    return add


def predict(random: Random, texts=(b"bank",), shape=None, name="pause") -> predict_pb2.PredictRequest:
    request = predict_pb2.PredictRequest()
    request.model_spec.name = name
    tensor = request.inputs["text"]
    tensor.dtype = types_pb2.DT_STRING
    for size in [len(texts)] if shape is None else shape:
        tensor.tensor_shape.dim.add(size=size)
    tensor.string_val.extend(texts)
    return request


@kind(KINDS)
def random_bytes(random, _):
    return Grpc("random bytes", random.choice(list(METHODS)), random.randbytes(random.choice([0, 1, 2, 8, 50, 5_000])))


@kind(KINDS)
def truncated(random, _):
    whole = predict(random, [random.randbytes(random.randrange(100)) for _ in range(4)]).SerializeToString()
    return Grpc("truncated", random.choice(list(METHODS)), whole[: random.randrange(len(whole))])


@kind(KINDS)
def flipped(random, _):
    data = bytearray(predict(random, [b"bank", b"beer"]).SerializeToString())
    for _ in range(random.randrange(1, 4)):
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    return Grpc("flipped bits", PREDICT, bytes(data))


@kind(KINDS)
def wrong_tensor(random, _):
    request = predict(random)
    tensor = request.inputs["text"]
    tensor.dtype = random.choice([*range(30), 107, 999, -5])
    field_name = random.choice(["float_val", "int_val", "bool_val", "half_val", "tensor_content", "string_val"])
    if field_name == "tensor_content":
        tensor.tensor_content = random.randbytes(40)
    else:
        values = [b"x"] if field_name == "string_val" else [True] if field_name == "bool_val" else [1]
        getattr(tensor, field_name).extend(values * random.randrange(5))
    return Grpc("wrong tensor", PREDICT, request.SerializeToString())


@kind(KINDS)
def wrong_shape(random, _):
    sizes = [-(2**63), -2, -1, 0, 1, 2, 16_385, 2**31, 2**63 - 1]
    shape = [random.choice(sizes) for _ in range(random.randrange(5))]
    return Grpc("wrong shape", PREDICT, predict(random, [b"a"] * random.randrange(3), shape).SerializeToString())


@kind(KINDS)
def path_for_a_name(random, around):
    method = random.choice(list(METHODS))
    request = METHODS[method]()
    name = random.choice([*NAMES, around.victim, around.base])
    if method.endswith("MultiInference"):
        request.tasks.add(method_name=random.choice(["", "tensorflow/serving/classify", "x"])).model_spec.name = name
    elif method.endswith("HandleReloadConfigRequest"):
        request.config.model_config_list.config.add(name=name, base_path=around.base)
    else:
        request.model_spec.name = name
    return Grpc("path for a name", method, request.SerializeToString())


@kind(KINDS)
def reload(random, around):
    request = model_management_pb2.ReloadConfigRequest()
    if random.random() < 0.8:
        request.config.model_config_list.SetInParent()
    for _ in range(random.randrange(3)):
        model = request.config.model_config_list.config.add(model_platform=random.choice(["tensorflow", "", "x"]))
        model.name = random.choice(["pause", "other", around.victim, *NAMES])
        paths = [around.base, around.victim, "/", "", "..", f"{around.base}/../..", "file:///etc", "gs://x/y", "\0"]
        model.base_path = random.choice(paths)
        model.model_version_policy.specific.versions.extend([random.randrange(-1, 9)])
    return Grpc("reload", f"{MODEL}/HandleReloadConfigRequest", request.SerializeToString())


@kind(KINDS)
def wrong_method(random, _):
    methods = [
        f"{PREDICTION}/predict",
        f"{PREDICTION}/../x",
        f"{MODEL}/Delete",
        "/",
        "/x/y/z",
        "/grpc.health.v1.Health/x",
    ]
    return Grpc("wrong method", random.choice(methods), predict(random).SerializeToString())


@kind(KINDS)
def other_message(random, _):
    """One method's message to another."""
    return Grpc("other message", random.choice(list(METHODS)), predict(random, [b"bank"] * 3).SerializeToString())


@kind(KINDS)
def wrong_choice(random, _):
    request = predict(random)
    if random.random() < 0.5:
        request.model_spec.version.value = random.choice([0, -1, 2, 2**63 - 1, -(2**63)])
    else:
        request.model_spec.version_label = random.choice(NAMES)
    request.model_spec.signature_name = random.choice(["", "contract", "__saved_model_init_op", *NAMES])
    request.output_filter.extend(random.choice([[], ["model"], ["model", "model"], [random.choice(NAMES)]]))
    return Grpc("wrong choice", PREDICT, request.SerializeToString())


@kind(KINDS)
def strange_but_right(random, _):
    """Texts of any bytes are texts."""
    texts = [random.randbytes(random.randrange(60)) for _ in range(random.randrange(1, 5))]
    metadata = random.choice([(), (("x-y", "z" * 500),), (("x-bin", b"\0"), ("pause-client", "x"))])
    return Grpc("strange but right", PREDICT, predict(random, texts).SerializeToString(), metadata)


@kind(KINDS)
def signature_without_inputs(random, _):
    """Every SavedModel has one that is not for clients."""
    request = predict_pb2.PredictRequest()
    request.model_spec.name, request.model_spec.signature_name = "pause", "__saved_model_init_op"
    return Grpc("signature without inputs", PREDICT, request.SerializeToString())


# large ones


@kind(LARGE_KINDS)
def giant_text(random, _):
    size = random.choice([2**20 - 1, 2**20 + 1, 30 * 2**20, 40 * 2**20])
    return Grpc("giant text", PREDICT, predict(random, [b"a " * (size // 2)]).SerializeToString())


@kind(LARGE_KINDS)
def many_values(random, _):
    request = predict(random, [b""] * 500_000, [random.choice([1, 16_384, 500_000])])
    return Grpc("many values", PREDICT, request.SerializeToString())


@kind(LARGE_KINDS)
def many_times_one(random, _):
    return Grpc("16 GB declared", PREDICT, predict(random, [b"x" * 2**20], [16_384]).SerializeToString())
