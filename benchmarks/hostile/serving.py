"""Sends hostile requests to an embedded server; checks each response, and the server's state and memory afterwards."""

import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import grpc
import httpx
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import get_model_status_pb2, predict_pb2

from benchmarks.hostile.grpc_requests import METHODS, MODEL, PREDICT, Grpc, Surroundings
from benchmarks.hostile.memory import GROWTH, resident_bytes
from benchmarks.hostile.rest_requests import Raw, Rest
from benchmarks.hostile.serving_requests import Request, hostile_requests

TIMEOUT = 60  # seconds: whatever hangs ends as DEADLINE_EXCEEDED, which is never right
# What a caller's own mistake is answered with. All else is the server's fault, as OK is where the answer is not right.
NAMED = {"INVALID_ARGUMENT", "NOT_FOUND", "FAILED_PRECONDITION", "PERMISSION_DENIED", "UNIMPLEMENTED",
         "RESOURCE_EXHAUSTED", "OUT_OF_RANGE"}  # fmt: skip
REFUSED = range(400, 500)


@dataclass(frozen=True)
class Target:
    """A server under attack."""

    address: str
    rest: str  # URL
    pid: int
    around: Surroundings

    def memory(self) -> int:
        """Resident bytes, the least of some moments: a large message is let go of a moment after its answer."""
        readings = []
        for _ in range(20):
            readings.append(resident_bytes(self.pid))
            time.sleep(0.05)
        return min(readings)

    def files(self) -> dict[str, tuple[int, float]]:
        found = {}
        for root in (self.around.base, self.around.victim):
            for path in Path(root).rglob("*"):
                stat = path.stat()
                found[str(path)] = (stat.st_size, stat.st_mtime)
        return found


class Sender:
    """For any thread; `fault` is what is wrong with the server's answer to a request."""

    def __init__(self, target: Target):
        self.channel = grpc.insecure_channel(target.address, [("grpc.max_send_message_length", -1)])
        self.rest = httpx.Client(base_url=target.rest, timeout=TIMEOUT, trust_env=False)
        host, _, port = target.rest.removeprefix("http://").partition(":")
        self._rest_address = (host, int(port))
        self.responses: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()

    def close(self) -> None:
        self.channel.close()
        self.rest.close()

    def fault(self, request: Request) -> str | None:
        if isinstance(request, Grpc):
            response, fault = self._grpc(request)
        else:
            response, fault = self._rest(request) if isinstance(request, Rest) else self._raw(request)
        with self._lock:
            self.responses[request.kind, response] += 1
        return f"{request.kind}: {fault}" if fault else None

    def _grpc(self, request: Grpc) -> tuple[str, str | None]:
        try:
            data = self.channel.unary_unary(request.method)(request.data, timeout=TIMEOUT, metadata=request.metadata)
        except grpc.RpcError as error:
            code, details = error.code().name, error.details()
            return code, None if code in NAMED and details else f"{code} {details!r} to {request.method}"
        return "OK", wrong_response(request, data)

    def _rest(self, request: Rest) -> tuple[str, str | None]:
        try:
            response = self.rest.request(request.verb, request.path, content=request.body, headers=request.headers)
        except httpx.TransportError as error:
            return type(error).__name__, f"{type(error).__name__} at {request.verb} {request.path}"
        status, body = response.status_code, response.content
        if request.verb == "HEAD":
            good = status < 500
        elif status == 200:
            good = b"NaN" not in body and (not body or body[:1] == b"{")
        else:
            good = status in REFUSED and bool(response.json().get("error"))
        return str(status), None if good else f"{status} {body[:200]!r} at {request.verb} {request.path}"

    def _raw(self, request: Raw) -> tuple[str, str | None]:
        said = b""
        try:
            with socket.create_connection(self._rest_address, timeout=TIMEOUT) as connection:
                connection.sendall(request.data)
                connection.shutdown(socket.SHUT_WR)
                while part := connection.recv(65_536):
                    said += part
        except TimeoutError:
            return "timeout", f"no end to {request.data[:80]!r}"
        except OSError:
            pass  # hung up on before we had finished
        status = said.split(b" ", 2)[1].decode("latin-1") if said.startswith(b"HTTP/") else "closed"
        return status, f"{said[:200]!r} to {request.data[:80]!r}" if status.startswith("5") else None


def wrong_response(request: Grpc, data: bytes) -> str | None:
    """What is wrong with an answer that the server calls right."""
    if request.method != PREDICT:
        return None if request.method in METHODS and not request.method.startswith(f"{MODEL}/Handle") else "OK"
    asked, response = predict_pb2.PredictRequest.FromString(request.data), predict_pb2.PredictResponse.FromString(data)
    count = asked.inputs["text"].tensor_shape.dim[0].size
    for name, tensor in response.outputs.items():
        values = tf.make_ndarray(tensor)
        if len(values) != count:
            return f"{len(values)} values of {name} for {count} texts"
        if name == "embedding" and count and np.abs(np.linalg.norm(values, axis=1) - 1).max() > 1e-4:
            return "a vector that is not of unit length"
    return None if response.outputs else "no outputs"


@dataclass(frozen=True)
class Outcome:
    """What came of an attack."""

    faults: list[str]  # none where all is well
    responses: Counter[tuple[str, str]]  # how often each kind of request had each answer
    memory: list[int]  # bytes after a fifth of the requests, and after all


def attack(target: Target, count: int, seed: int = 2021, threads: int = 4) -> Outcome:
    sender = Sender(target)
    try:
        before, files = state(sender), target.files()
        requests = hostile_requests(seed, count, target.around)
        faults, readings = [], []
        with ThreadPoolExecutor(threads) as pool:
            for part in (count // 5, count - count // 5):
                # Not all at once: a part of 40,000 would wait in memory.
                while chunk := list(islice(requests, min(part, 500))):
                    faults += [fault for fault in pool.map(sender.fault, chunk) if fault]
                    part -= len(chunk)
                readings.append(target.memory())
        faults += changes(before, state(sender), files, target.files())
        if readings[1] - readings[0] > GROWTH:
            faults.append(f"memory grew from {readings[0]:,} to {readings[1]:,} bytes")
        return Outcome(faults, sender.responses, readings)
    finally:
        sender.close()


def state(sender: Sender) -> tuple[bytes, bytes]:
    """The status of the model, and its response to a text."""
    status = get_model_status_pb2.GetModelStatusRequest()
    predict = predict_pb2.PredictRequest()
    status.model_spec.name = predict.model_spec.name = "pause"
    predict.inputs["text"].CopyFrom(tf.make_tensor_proto(["bank loans"]))
    asked = ((f"{MODEL}/GetModelStatus", status), (PREDICT, predict))
    known, vectors = (
        sender.channel.unary_unary(method)(each.SerializeToString(), timeout=TIMEOUT) for method, each in asked
    )
    vector = tf.make_ndarray(predict_pb2.PredictResponse.FromString(vectors).outputs["embedding"])
    return known, np.round(vector, 4).tobytes()


def changes(before, after, files, files_after) -> Iterator[str]:
    if before[0] != after[0]:
        yield "the status of the model is another"
    if before[1] != after[1]:
        yield "a text has another vector"
    for path in files.keys() | files_after.keys():
        if files.get(path) != files_after.get(path):
            yield f"{path} was changed, made or removed"
