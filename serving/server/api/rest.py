"""TensorFlow Serving's REST interface: its paths, its JSON, its status codes."""

from __future__ import annotations

import asyncio
import logging
import time
import zlib
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from grpc import StatusCode
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow_serving.apis import model_pb2, predict_pb2

from serving.server.api.inference import CLASSIFY, REGRESS, ExampleInference
from serving.server.api.json_tensors import parse, read_examples, read_inputs, signature_name, write_outputs
from serving.server.api.predict import Predictor, signatures_of
from serving.server.api.rest_paths import Target, target_of
from serving.server.api.status import Failure
from serving.server.metrics import CONTENT_TYPE, Metrics
from serving.server.models.registry import Models

BODY_BYTES = 32 * 2**20
TOO_LARGE = f"the body has more than {BODY_BYTES} bytes: send fewer texts at once"
# A client that is still sending does not hear an answer: a body that is too large is read on and dropped, up to here.
READ_BYTES = 4 * BODY_BYTES
DEFAULT_SIGNATURE = "serving_default"

# 500 for what is not here: UNKNOWN, INTERNAL, DATA_LOSS
HTTP_STATUS = {
    StatusCode.INVALID_ARGUMENT: 400,
    StatusCode.FAILED_PRECONDITION: 400,
    StatusCode.OUT_OF_RANGE: 400,
    StatusCode.UNAUTHENTICATED: 401,
    StatusCode.PERMISSION_DENIED: 403,
    StatusCode.NOT_FOUND: 404,
    StatusCode.ABORTED: 409,
    StatusCode.ALREADY_EXISTS: 409,
    StatusCode.RESOURCE_EXHAUSTED: 429,
    StatusCode.CANCELLED: 499,
    StatusCode.UNIMPLEMENTED: 501,
    StatusCode.UNAVAILABLE: 503,
    StatusCode.DEADLINE_EXCEEDED: 504,
}

log = logging.getLogger(__name__)


def create_app(
    models: Models,
    predictor: Predictor,
    inference: ExampleInference,
    metrics: Metrics,
    metrics_path: str | None,
    timeout_seconds: float,
) -> Starlette:
    """`timeout_seconds` holds for one request as a whole; there is a Prometheus page where `metrics_path` names one."""

    async def page(_: Request) -> Response:
        return Response(metrics.exposition(), media_type=CONTENT_TYPE)

    routes = [Route(metrics_path, page)] if metrics_path else []
    # One route for the rest: its paths are matched in any case, and before they are unescaped; no router does that.
    routes.append(Route("/{path:path}", _Rest(models, predictor, inference, metrics, timeout_seconds)))
    return Starlette(routes=routes)


class BodyTooLarge(Failure):
    """HTTP has a status of its own for it."""


class _Rest:
    """An ASGI application, so that it sees requests of every HTTP method."""

    def __init__(
        self,
        models: Models,
        predictor: Predictor,
        inference: ExampleInference,
        metrics: Metrics,
        timeout_seconds: float,
    ):
        self._models, self._predictor, self._inference, self._metrics = models, predictor, inference, metrics
        self._timeout_seconds = timeout_seconds
        self._responders: dict[str, Callable[[Target, Request], Awaitable[bytes]]] = {
            "status": self._status,
            "metadata": self._metadata,
            "predict": self._predict,
            "classify": self._examples,
            "regress": self._examples,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        path = (scope.get("raw_path") or scope["path"].encode()).decode("latin-1")
        try:
            target = target_of(request.method, path)
        except Failure as failure:
            response = _error(failure)
        else:
            response = await self._respond(target, request)
        await response(scope, receive, send)

    async def _respond(self, target: Target, request: Request) -> Response:
        began, code = time.monotonic(), StatusCode.CANCELLED
        try:
            async with asyncio.timeout(self._timeout_seconds):
                body = await self._responders[target.method](target, request)
            code = StatusCode.OK
            return Response(body, media_type="application/json")
        except Exception as error:
            failure = _failure(error, target.method, self._timeout_seconds)
            code = failure.code
            return _error(failure)
        finally:
            self._metrics.requested(target.name, target.method, "REST", code, time.monotonic() - began)

    async def _status(self, target: Target, _: Request) -> bytes:
        versions = [
            {
                "version": str(version.version),  # JSON of protocol buffers writes 64-bit integers as strings
                "state": version.state,
                "status": {"error_code": version.code.name, "error_message": version.message},
            }
            for version in self._models.status(target.name, target.version, target.label)
        ]
        return orjson.dumps({"model_version_status": versions})

    async def _metadata(self, target: Target, _: Request) -> bytes:
        spec, signatures = signatures_of(self._predictor, target.spec())
        return orjson.dumps({"model_spec": _plain(spec), "metadata": {"signature_def": _plain(signatures)}})

    async def _predict(self, target: Target, request: Request) -> bytes:
        document = parse(await _body(request))
        spec = target.spec(signature_name(document))
        tensors, layout = read_inputs(document, self._signature(spec))
        response = await self._predictor.predict(
            predict_pb2.PredictRequest(model_spec=spec, inputs=tensors), compact=True
        )
        return write_outputs(response.outputs, layout)

    async def _examples(self, target: Target, request: Request) -> bytes:
        document = parse(await _body(request))
        spec = target.spec(signature_name(document))
        read_examples(document, target.method)
        self._inference.respond_spec(spec, CLASSIFY if target.method == "classify" else REGRESS)

    def _signature(self, spec: model_pb2.ModelSpec) -> meta_graph_pb2.SignatureDef:
        name = spec.signature_name or DEFAULT_SIGNATURE
        _, signatures = signatures_of(self._predictor, spec)
        if name not in signatures.signature_def:
            known = ", ".join(sorted(key for key in signatures.signature_def if not key.startswith("__")))
            raise Failure(StatusCode.INVALID_ARGUMENT, f"signature {name!r} not found; there are: {known}")
        return signatures.signature_def[name]


async def _body(request: Request) -> bytes:
    kept: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size <= BODY_BYTES:
            kept.append(chunk)
        else:
            kept.clear()
        if size > READ_BYTES:
            break
    if size > BODY_BYTES:
        raise BodyTooLarge(StatusCode.RESOURCE_EXHAUSTED, TOO_LARGE)
    body = b"".join(kept)
    return _unzipped(body) if "gzip" in request.headers.get("content-encoding", "").lower() else body


def _unzipped(body: bytes) -> bytes:
    try:
        plain = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16).decompress(body, BODY_BYTES + 1)
    except zlib.error as error:
        raise Failure(StatusCode.INVALID_ARGUMENT, f"the body is not gzip, as its header says: {error}") from error
    if len(plain) > BODY_BYTES:
        raise BodyTooLarge(StatusCode.RESOURCE_EXHAUSTED, TOO_LARGE)
    return plain


def _failure(error: Exception, method: str, timeout_seconds: float) -> Failure:
    if isinstance(error, Failure):
        return error
    if isinstance(error, TimeoutError):
        return Failure(StatusCode.DEADLINE_EXCEEDED, f"not answered within {timeout_seconds:g} seconds")
    if isinstance(error, ClientDisconnect):
        return Failure(StatusCode.CANCELLED, "the client went away")
    log.error("%s failed", method, exc_info=error)
    return Failure(StatusCode.INTERNAL, "the server failed; its log says why")


def _error(failure: Failure) -> Response:
    status = 413 if isinstance(failure, BodyTooLarge) else HTTP_STATUS.get(failure.code, 500)
    return Response(orjson.dumps({"error": failure.message}), status, media_type="application/json")


def _plain(message: Message) -> Any:
    """As TensorFlow Serving prints messages: every field, under the name it has in the .proto."""
    return MessageToDict(message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
