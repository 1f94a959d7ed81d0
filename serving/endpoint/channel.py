"""One endpoint behind several addresses: round robin, deadlines, retries with back-off and jitter, fail-over."""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import grpc

from common.errors import Outage
from serving import wire_pb2 as wire
from serving.endpoint.connection import AddressError, Connection, TlsFiles, checked
from serving.endpoint.pods import Pod, Pods

RETRIED = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.DEADLINE_EXCEEDED)
# What a request is answered with when its own content is at fault; any other status is the service's fault.
CONTENT = (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.OUT_OF_RANGE, grpc.StatusCode.DATA_LOSS)
# A message over the size limit has the code of a full queue, but no retry makes it smaller (C++ and Go, Java).
TOO_LARGE = re.compile("larger than max|exceeds maximum size")
# Certificates that do not fit have the code of a server that is down, but no waiting mends them.
TLS_FAULT = re.compile("SSL_ERROR_SSL|security handshaker|Hostname Verification")
Response = TypeVar("Response")
FIRST_WAIT, LONGEST_WAIT = 0.1, 5.0  # seconds


class Refused(ValueError):
    """The server will not take this request, however often it is sent."""

    def __init__(self, reason: str):
        super().__init__(reason)
        self.reason = reason


class ServingUnavailable(Outage):
    """The service did not answer within the deadline, or is not what the client expects."""


class ModelNotServed(ServingUnavailable):
    """The service is well, but none of its versions is the model that was asked for."""


class NotReady(Exception):
    """An address that answers, but not yet with what it was asked for; tried again as one that does not answer."""


class Abandoned(Exception):
    """Another request of the same run failed for good, so that this one is not worth sending any more."""


class Endpoint:
    """Spreads requests evenly over its servers; where one fails, the next is asked.

    Not by gRPC's own retry policy: it ends after five tries whatever the deadline, knows nothing of a second address,
    and its waits cannot be abandoned."""

    def __init__(self, addresses: Sequence[str], timeout: float, deadline: float, tls: TlsFiles | None = None):
        if isinstance(addresses, str) or not addresses:
            raise AddressError(f"serving addresses are a list such as ['localhost:8500'], got {addresses!r}")
        if timeout <= 0 or deadline <= 0:
            raise ValueError(f"timeout and deadline must be above 0 seconds, got {timeout:g} and {deadline:g}")
        self.addresses = tuple(checked(address) for address in addresses)
        self._timeout, self._deadline = timeout, deadline
        credentials = tls.credentials() if tls else None
        self._pods = Pods(self.addresses, lambda address, name: Connection(address, credentials, name))
        self._closed = False

    @property
    def timeout(self) -> float:
        """Seconds of one try."""
        return self._timeout

    @property
    def pods(self) -> tuple[Pod, ...]:
        """The servers behind the addresses at this moment."""
        return self._pods.all()

    def predict(self, request: wire.PredictRequest, abandoned: threading.Event | None = None) -> wire.PredictResponse:
        """Raises Refused, ServingUnavailable, or Abandoned once that event is set and the present try is over."""
        return self.tried(lambda pod, timeout: pod.connection.predict(request, timeout=timeout), abandoned)

    def tried(
        self,
        send: Callable[[Pod, float], Response],
        abandoned: threading.Event | None = None,
        prefers: Callable[[Pod], bool] | None = None,
        spread: bool = True,
    ) -> Response:
        """What `send` returns of a server within a number of seconds: of the next in turn, or with `spread` off the
        first, among those that are preferred. What it raises decides whether another is tried; ModelNotServed is raised
        when all of them in a row say so."""
        abandoned = abandoned or threading.Event()
        began, wait, tries, reason = time.monotonic(), FIRST_WAIT, 0, ""
        while True:
            turn, absent = self._pods.turn(prefers, spread), 0
            for others, pod in zip(range(len(turn) - 1, -1, -1), turn, strict=True):
                seconds = self._seconds(began, others, abandoned)
                if tries and not seconds:
                    break
                tries += 1
                try:
                    response = send(pod, seconds or 0.001)
                except (grpc.RpcError, NotReady) as error:
                    reason = self._passing_reason(pod, error)
                    if len(turn) > 1:
                        pod.failed()
                except ModelNotServed as error:
                    absent, reason = absent + 1, str(error)
                    if absent == len(turn):
                        raise
                else:
                    pod.answered()
                    return response
            # Another server is asked at once; only when all have failed is there something to wait for. The jitter
            # keeps many clients from returning at one moment.
            pause, passed = wait * random.uniform(0.5, 1.5), time.monotonic() - began
            reason = reason if turn else self._pods.unresolved
            if passed + pause >= self._deadline or TLS_FAULT.search(reason):
                raise ServingUnavailable(self._no_response(tries, passed, reason))
            self._seconds(began, 0, abandoned)
            abandoned.wait(pause)
            wait = min(2 * wait, LONGEST_WAIT)

    def close(self) -> None:
        """Ends the requests under way, too."""
        self._closed = True
        self._pods.close()

    def _seconds(self, began: float, others: int, abandoned: threading.Event) -> float:
        """Of the next try; 0 when the deadline is over. Raises where nobody waits for it any more."""
        if self._closed:
            raise ServingUnavailable("this client was closed; make a new one")
        if abandoned.is_set():
            raise Abandoned
        left = max(0.0, began + self._deadline - time.monotonic())
        # A server that is silent must leave some time to ask another.
        return min(self._timeout, left / 2 if others else left)

    def _passing_reason(self, pod: Pod, error: grpc.RpcError | NotReady) -> str:
        """The reason of a failure that may pass; raises for one that will not."""
        if isinstance(error, NotReady):
            return str(error)
        code, details = error.code(), " ".join((error.details() or "").split())
        reason = f"{code.name}: {details}"
        if code in CONTENT or (code is grpc.StatusCode.RESOURCE_EXHAUSTED and TOO_LARGE.search(details)):
            raise Refused(reason) from error
        if code not in RETRIED:
            raise ServingUnavailable(
                f"serving at {pod.address} answered {reason}; check the address and the model's name"
            ) from error
        return reason

    def _no_response(self, tries: int, passed: float, reason: str) -> str:
        tls = "do the TLS files fit the server and each other?"
        up = "is the server up, and is TLS the same on both sides?"
        where, advice = ", ".join(self.addresses), tls if TLS_FAULT.search(reason) else up
        return f"serving at {where} gave no answer in {passed:.1f} s, tries: {tries}; {advice} ({reason})"
