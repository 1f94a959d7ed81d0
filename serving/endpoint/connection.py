"""Connections to servers: addresses, TLS files, the settings of a gRPC channel, and the calls that go over it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import grpc

from common.errors import InputError
from serving import wire_pb2 as wire
from serving.tracing import spans

METHOD = "/tensorflow.serving.PredictionService/Predict"
STATUS_METHOD = "/tensorflow.serving.ModelService/GetModelStatus"
# Asks the embedded server for vectors as bytes, not number by number; TensorFlow Serving has no such choice. As the
# beginning of the user agent, which goes with every request anyway: a header of its own takes 40 us a request.
COMPACT = "pause-client/tensor-content"
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


class AddressError(InputError):
    """An address or a certificate that no connection can be made with."""


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


def checked(address: str) -> str:
    # Without a port gRPC would take 443, and of a URL the scheme for a host.
    if re.match("https?://", address) or not re.fullmatch(r"unix:\S+|\S+:\d+", address):
        raise AddressError(f"serving address {address!r} is not usable; write HOST:PORT, such as localhost:8500")
    return address


class Connection:
    """A channel to one address, and its two calls. Nothing is sent yet."""

    def __init__(self, address: str, credentials: grpc.ChannelCredentials | None, name: str | None = None):
        """`name`: the host and port that the address was resolved from, which the server's certificate is for."""
        options: list[tuple[str, Any]] = list(OPTIONS)
        if name and credentials:
            options.append(("grpc.ssl_target_name_override", name.rpartition(":")[0]))
        elif name:
            options.append(("grpc.default_authority", name))
        self.channel = (
            grpc.insecure_channel(address, options)
            if credentials is None
            else grpc.secure_channel(address, credentials, options)
        )
        self.predict = cast(
            Callable[..., wire.PredictResponse], self._call(METHOD, address, wire.PredictRequest, wire.PredictResponse)
        )
        self.status = cast(
            Callable[..., wire.GetModelStatusResponse],
            self._call(STATUS_METHOD, address, wire.GetModelStatusRequest, wire.GetModelStatusResponse),
        )

    def _call(self, method: str, address: str, asked: Any, answered: Any) -> Callable[..., Any]:
        call = self.channel.unary_unary(
            method, request_serializer=asked.SerializeToString, response_deserializer=answered.FromString
        )
        # Decided once: without tracing a request takes no step more than gRPC's own.
        return spans.traced_call(call, method, address) if spans.is_on() else cast(Callable[..., Any], call)
