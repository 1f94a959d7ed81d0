"""One endpoint behind several addresses: deadlines, retries with back-off and jitter, fail-over, TLS."""

from __future__ import annotations

import itertools
import random
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import grpc

from model.errors import InputError
from serving import wire_pb2 as wire

METHOD = "/tensorflow.serving.PredictionService/Predict"
RETRIED = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.DEADLINE_EXCEEDED)
# What a request is answered with when its own content is at fault; any other status is the service's fault.
CONTENT = (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.OUT_OF_RANGE, grpc.StatusCode.DATA_LOSS)
# A message over the size limit has the code of a full queue, but no retry makes it smaller (C++ and Go, Java).
TOO_LARGE = re.compile("larger than max|exceeds maximum size")
# Certificates that do not fit have the code of a server that is down, but no waiting mends them.
TLS_FAULT = re.compile("SSL_ERROR_SSL|security handshaker")
# Asks the embedded server for vectors as bytes, not number by number; TensorFlow Serving has no such choice. As the
# beginning of the user agent, which goes with every request anyway: a header of its own takes 40 us a request.
COMPACT = "pause-client/tensor-content"
FIRST_WAIT, LONGEST_WAIT = 0.1, 5.0  # seconds
OPTIONS = [
    ("grpc.primary_user_agent", COMPACT),
    # Vectors of a large request may outgrow the 4 MB that a client accepts by default.
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # By itself gRPC tries for 20 s to connect to a host that is silent, and ever more seldom, up to two minutes apart.
    ("grpc.min_reconnect_backoff_ms", 5_000),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    # A host that vanishes without closing its connection would hold it for a quarter of an hour.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
]


class Refused(ValueError):
    """The server will not take this request, however often it is sent."""

    def __init__(self, reason: str):
        super().__init__(reason)
        self.reason = reason


class ServingUnavailable(InputError):
    """The service did not answer within the deadline, or is not what the client expects."""


class AddressError(InputError):
    """An address or a certificate that no connection can be made with."""


class Abandoned(Exception):
    """Another request of the same run failed for good, so that this one is not worth sending any more."""


@dataclass(frozen=True)
class TlsFiles:
    """PEM files. Without an authority the system's own are trusted; certificate and key of the client itself are for
    mutual TLS."""

    authority: str | None = None
    certificate: str | None = None
    key: str | None = None

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise AddressError(
                f"mutual TLS needs certificate and key, got certificate {self.certificate} and key {self.key}"
            )

    def credentials(self) -> grpc.ChannelCredentials:
        authority, certificate = (_pem(name, "CERTIFICATE") for name in (self.authority, self.certificate))
        return grpc.ssl_channel_credentials(authority, _pem(self.key, "PRIVATE KEY"), certificate)


def _pem(name: str | None, kind: str) -> bytes | None:
    if name is None:
        return None
    try:
        content = Path(name).read_bytes()
    except OSError as error:
        raise AddressError(f"TLS file {name} cannot be read: {error.strerror}") from error
    # gRPC itself would only say, request after request, that it cannot connect.
    if not re.search(rb"-----BEGIN [A-Z ]*%s-----" % kind.encode(), content):
        raise AddressError(f"TLS file {name} holds no {kind} in PEM format")
    return content


class Endpoint:
    """Sends a request to the address that answered last, and to the next one when that fails."""

    def __init__(self, addresses: Sequence[str], timeout: float, deadline: float, tls: TlsFiles | None = None):
        if isinstance(addresses, str) or not addresses:
            raise AddressError(f"serving addresses are a list such as ['localhost:8500'], got {addresses!r}")
        if timeout <= 0 or deadline <= 0:
            raise ValueError(f"timeout and deadline must be above 0 seconds, got {timeout:g} and {deadline:g}")
        self.addresses = tuple(_checked(address) for address in addresses)
        self._timeout, self._deadline = timeout, deadline
        credentials = tls.credentials() if tls else None
        self._channels = [_channel(address, credentials) for address in self.addresses]
        self._calls = [_predict_call(channel) for channel in self._channels]
        self._current, self._closed = 0, False

    def predict(self, request: wire.PredictRequest, abandoned: threading.Event | None = None) -> wire.PredictResponse:
        """Raises Refused, ServingUnavailable, or Abandoned once that event is set and the present try is over."""
        abandoned = abandoned or threading.Event()
        began, wait, number = time.monotonic(), FIRST_WAIT, self._current
        for tries in itertools.count(1):
            if self._closed:
                raise ServingUnavailable("this client was closed; make a new one")
            if abandoned.is_set():
                raise Abandoned
            left = began + self._deadline - time.monotonic()
            try:
                response = self._calls[number](request, timeout=max(0.001, min(self._timeout, left)))
            except grpc.RpcError as error:
                reason = self._passing_reason(number, error)
            else:
                self._current = number
                return response
            number = (number + 1) % len(self._calls)
            # Another address is asked at once; only when all have failed is there something to wait for. The jitter
            # keeps many clients from returning at one moment.
            pause = 0.0 if tries % len(self._calls) else wait * random.uniform(0.5, 1.5)
            passed = time.monotonic() - began
            if passed + pause >= self._deadline or (pause and TLS_FAULT.search(reason)):
                raise ServingUnavailable(self._no_answer(tries, passed, reason))
            if pause:
                abandoned.wait(pause)
                wait, number = min(2 * wait, LONGEST_WAIT), self._current
        raise AssertionError("counting never ends")

    def close(self) -> None:
        """Ends the requests under way, too."""
        self._closed = True
        for channel in self._channels:
            channel.close()

    def _passing_reason(self, number: int, error: grpc.RpcError) -> str:
        """The reason of a failure that may pass; raises for one that will not."""
        code, details = error.code(), " ".join((error.details() or "").split())
        reason = f"{code.name}: {details}"
        if code in CONTENT or (code is grpc.StatusCode.RESOURCE_EXHAUSTED and TOO_LARGE.search(details)):
            raise Refused(reason) from error
        if code not in RETRIED:
            raise ServingUnavailable(
                f"serving at {self.addresses[number]} answered {reason}; check the address and the model's name"
            ) from error
        return reason

    def _no_answer(self, tries: int, passed: float, reason: str) -> str:
        tls = "do the TLS files fit the server and each other?"
        up = "is the server up, and is TLS the same on both sides?"
        where, advice = ", ".join(self.addresses), tls if TLS_FAULT.search(reason) else up
        return f"serving at {where} gave no answer in {passed:.1f} s, tries: {tries}; {advice} ({reason})"


def _checked(address: str) -> str:
    # Without a port gRPC would take 443, and of a URL the scheme for a host.
    if re.match("https?://", address) or not re.fullmatch(r"unix:\S+|\S+:\d+", address):
        raise AddressError(f"serving address {address!r} is not usable; write HOST:PORT, such as localhost:8500")
    return address


def _channel(address: str, credentials: grpc.ChannelCredentials | None) -> grpc.Channel:
    if credentials is None:
        return grpc.insecure_channel(address, OPTIONS)
    return grpc.secure_channel(address, credentials, OPTIONS)


def _predict_call(channel: grpc.Channel) -> Callable[..., wire.PredictResponse]:
    call = channel.unary_unary(
        METHOD,
        request_serializer=wire.PredictRequest.SerializeToString,
        response_deserializer=wire.PredictResponse.FromString,
    )
    return cast(Callable[..., wire.PredictResponse], call)
