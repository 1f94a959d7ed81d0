"""TensorFlow Serving's gRPC services. Requests arrive as bytes: what cannot be parsed is the caller's mistake."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message
from grpc import aio
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    inference_pb2,
    model_management_pb2,
    predict_pb2,
    regression_pb2,
)

from serving.endpoint.connection import COMPACT
from serving.server.api.inference import CLASSIFY, REGRESS, ExampleInference
from serving.server.api.predict import BYTES_PER_REQUEST, Predictor, wanted
from serving.server.api.reload import Reload
from serving.server.api.status import Failure
from serving.server.metrics import Metrics
from serving.server.models.registry import Models
from serving.tracing import spans

PREDICTION, MODEL = "tensorflow.serving.PredictionService", "tensorflow.serving.ModelService"
# Characters of a status message. It travels as a header, up to 12 bytes a character, and clients take 8 kB of headers:
# one that is too long reaches them as RESOURCE_EXHAUSTED, which they retry.
DETAILS = 600

log = logging.getLogger(__name__)
Asked = TypeVar("Asked", bound=Message)
# Of a request, and of whether its numbers are to be compact.
Respond = Callable[[Asked, bool], Message | Awaitable[Message]]
Handle = Callable[[bytes, aio.ServicerContext[bytes, bytes]], Awaitable[bytes]]


def create_server(
    models: Models, predictor: Predictor, examples: ExampleInference, reload: Reload, metrics: Metrics
) -> aio.Server:
    """Not started, and bound to no address yet."""
    server = aio.server(
        # Two servers must not share a port unnoticed.
        options=[("grpc.so_reuseport", 0), ("grpc.max_receive_message_length", BYTES_PER_REQUEST),
                 ("grpc.max_send_message_length", -1)],
    )  # fmt: skip

    def handler(asked: type[Asked], respond: Respond[Asked], method: str) -> Any:
        handle = _Call(asked, respond, method, metrics).handle
        return grpc.unary_unary_rpc_method_handler(_traced(handle, method) if spans.is_on() else handle)

    prediction = {
        "Predict": handler(predict_pb2.PredictRequest, predictor.predict, "predict"),
        "GetModelMetadata": handler(
            get_model_metadata_pb2.GetModelMetadataRequest, lambda asked, _: predictor.metadata(asked), "metadata"
        ),
        "Classify": handler(
            classification_pb2.ClassificationRequest, lambda asked, _: examples.respond(asked, CLASSIFY), "classify"
        ),
        "Regress": handler(
            regression_pb2.RegressionRequest, lambda asked, _: examples.respond(asked, REGRESS), "regress"
        ),
        "MultiInference": handler(
            inference_pb2.MultiInferenceRequest, lambda asked, _: examples.respond_all(asked), "multi_inference"
        ),
    }
    model = {
        "GetModelStatus": handler(
            get_model_status_pb2.GetModelStatusRequest, lambda asked, _: model_status(models, asked), "status"
        ),
        "HandleReloadConfigRequest": handler(
            model_management_pb2.ReloadConfigRequest, lambda asked, _: reload.respond(asked), "reload"
        ),
    }
    for service, methods in ((PREDICTION, prediction), (MODEL, model)):
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, methods)])
    return server


class _Call:
    """Parses, answers, counts; a Failure ends the call with its code, anything unforeseen with INTERNAL."""

    def __init__(self, asked: type[Any], respond: Respond[Any], method: str, metrics: Metrics):
        self._asked, self._respond, self._method, self._metrics = asked, respond, method, metrics

    async def handle(self, data: bytes, context: aio.ServicerContext[bytes, bytes]) -> bytes:
        began, model, code = time.monotonic(), "", grpc.StatusCode.CANCELLED
        try:
            request = self._parse(data)
            model = request.model_spec.name if "model_spec" in self._asked.DESCRIPTOR.fields_by_name else ""
            made = self._respond(request, _asks_for_bytes(context))
            response: bytes = (made if isinstance(made, Message) else await made).SerializeToString()
            code = grpc.StatusCode.OK
            return response
        except Failure as failure:
            code = failure.code
            message = failure.message
        except Exception:
            log.exception("%s failed", self._method)
            code, message = grpc.StatusCode.INTERNAL, "the server failed; its log says why"
        finally:
            self._metrics.requested(model, self._method, "GRPC", code, time.monotonic() - began)
            spans.note(**{"rpc.grpc.status_code": code.value[0]})
        await context.abort(code, message if len(message) <= DETAILS else f"{message[:DETAILS]}...")
        raise AssertionError("abort does not return")

    def _parse(self, data: bytes) -> Any:
        try:
            return self._asked.FromString(data)
        except DecodeError as error:
            name = self._asked.DESCRIPTOR.full_name
            raise Failure(grpc.StatusCode.INVALID_ARGUMENT, f"the request is no {name}: {error}") from error


def _traced(handle: Handle, method: str) -> Handle:
    """Below the span of whoever asks."""

    async def below(data: bytes, context: aio.ServicerContext[bytes, bytes]) -> bytes:
        given = (str(value) for key, value in context.invocation_metadata() or () if key == spans.HEADER)
        with spans.span(f"serve {method}", parent=next(given, None), kind="SERVER", **{"rpc.system": "grpc"}):
            return await handle(data, context)

    return below


def _asks_for_bytes(context: aio.ServicerContext[bytes, bytes]) -> bool:
    return any(
        key == "user-agent" and str(value).startswith(COMPACT) for key, value in context.invocation_metadata() or ()
    )


def model_status(
    models: Models, request: get_model_status_pb2.GetModelStatusRequest
) -> get_model_status_pb2.GetModelStatusResponse:
    response = get_model_status_pb2.GetModelStatusResponse()
    for version in models.status(*wanted(request)):
        status = response.model_version_status.add(version=version.version)
        status.state = get_model_status_pb2.ModelVersionStatus.State.Value(version.state)
        status.status.error_code = version.code.value[0]
        status.status.error_message = version.message
    return response
