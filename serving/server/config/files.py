"""The text files that flags name: models, batching, TLS and metrics, in TensorFlow Serving's own format."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from google.protobuf import text_format
from google.protobuf.message import Message
from tensorflow_serving.config.model_server_config_pb2 import ModelServerConfig, ModelType

from common.errors import InputError
from serving.server.config.names import check_name
from serving.server.config_pb2 import BatchingParameters, MonitoringConfig, SSLConfig

METRICS_PATH = "/monitoring/prometheus/metrics"
PLATFORM = "tensorflow"
CORES = len(os.sched_getaffinity(0))

log = logging.getLogger(__name__)
Config = TypeVar("Config", bound=Message)


class OptionsError(InputError):
    """A flag, or a file that a flag names, which no server can be started with."""


@dataclass(frozen=True)
class Batching:
    """Sizes of runs and of the queue before them."""

    max_texts: int = 256  # in one run
    wait_seconds: float = 0.0  # for a run to fill up
    max_runs_queued: int = 256
    threads: int = CORES


@dataclass(frozen=True)
class Tls:
    """Key and certificates in PEM."""

    key: bytes = field(repr=False)
    certificate: bytes
    authority: bytes | None  # who signs the clients' certificates
    verify_client: bool


def read_text(path: Path, flag: str, config: Config) -> Config:
    """The message that a text file holds; a mistake in it is answered with its line."""
    try:
        text_format.Parse(_read(path, flag).decode(), config)
        return config
    except UnicodeDecodeError as error:
        raise OptionsError(f"{flag} {path} is not text: {error}") from error
    except text_format.ParseError as error:
        reason = " ".join(str(error).partition(" : ")[2].split())
        raise OptionsError(f"{flag} {path}, line {error.GetLine()}: {reason}") from error


def _read(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise OptionsError(f"{what} {path} cannot be read: {error.strerror}") from error


def read_models(path: Path) -> ModelServerConfig:
    models = read_text(path, "--model_config_file", ModelServerConfig())
    try:
        check_models(models)
    except InputError as error:
        raise OptionsError(f"--model_config_file {path}: {error}") from error
    return models


def check_models(models: ModelServerConfig) -> None:
    """Also for configurations that arrive by HandleReloadConfigRequest; what is refused there is refused here."""
    if models.WhichOneof("config") == "custom_model_config":
        raise OptionsError("custom_model_config is not supported; use model_config_list")
    seen: set[str] = set()
    for model in models.model_config_list.config:
        if not model.name or not model.base_path:
            raise OptionsError(f"model {model.name!r} at {model.base_path!r}: it needs both a name and a base_path")
        check_name(model.name)
        if model.name in seen:
            raise OptionsError(f"model {model.name!r} is listed twice")
        seen.add(model.name)
        if model.model_platform != PLATFORM and (model.model_platform or model.model_type != ModelType.TENSORFLOW):
            raise OptionsError(
                f"model {model.name!r} has model_platform {model.model_platform!r}; "
                f'only model_platform: "{PLATFORM}" is supported'
            )


def read_batching(path: Path) -> Batching:
    given = read_text(path, "--batching_parameters_file", BatchingParameters())

    def value(name: str, least: int, default: float) -> float:
        found = getattr(given, name).value if given.HasField(name) else default
        if found < least:
            raise OptionsError(f"--batching_parameters_file {path}: {name} must be at least {least}, got {found}")
        return float(found)

    # A request larger than a run is always split here; there, runs are as large as requests unless this is set.
    split = given.enable_large_batch_splitting.value and given.HasField("max_execution_batch_size")
    most = value("max_batch_size", 1, Batching.max_texts)
    texts = value("max_execution_batch_size", 1, most) if split else most
    if texts > most:
        raise OptionsError(f"--batching_parameters_file {path}: max_execution_batch_size is above max_batch_size")
    if given.allowed_batch_sizes:
        log.warning("%s: allowed_batch_sizes is ignored, runs are sized by tokens", path)
    return Batching(
        max_texts=int(texts),
        wait_seconds=value("batch_timeout_micros", 0, 0) / 1e6,
        max_runs_queued=int(value("max_enqueued_batches", 1, Batching.max_runs_queued)),
        threads=int(value("num_batch_threads", 1, Batching.threads)),
    )


def read_tls(path: Path) -> Tls:
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    flag = f"--ssl_config_file {path}"
    given = read_text(path, "--ssl_config_file", SSLConfig())

    def pem(name: str, load: Callable[[bytes], Any]) -> tuple[bytes, Any]:
        text = getattr(given, name).strip()
        if not text:
            raise OptionsError(f"{flag}: {name} is missing")
        # TensorFlow Serving takes the PEM itself; a path keeps the key out of a file that is passed around.
        data = text.encode() if text.startswith("-----BEGIN") else _read(path.parent / text, f"{flag}: {name}")
        try:
            return data, load(data)
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:  # TypeError: a password is needed
            reason = str(error).partition("\n")[0]
            raise OptionsError(f"{flag}: {name} is not usable PEM without a password: {reason}") from error

    key, private = pem("server_key", lambda data: load_pem_private_key(data, None))
    certificate, chain = pem("server_cert", x509.load_pem_x509_certificates)
    if private.public_key() != chain[0].public_key():
        raise OptionsError(f"{flag}: server_key does not belong to server_cert")
    if given.client_verify and not given.custom_ca:
        raise OptionsError(f"{flag}: client_verify needs custom_ca, the authority that signs clients' certificates")
    authority = pem("custom_ca", x509.load_pem_x509_certificates)[0] if given.custom_ca else None
    return Tls(key, certificate, authority, given.client_verify)


def read_metrics_path(path: Path) -> str | None:
    """Where the metrics are served, or None where the file switches them off."""
    given = read_text(path, "--monitoring_config_file", MonitoringConfig()).prometheus_config
    if not given.enable:
        return None
    if given.path and not given.path.startswith("/"):
        raise OptionsError(f"--monitoring_config_file {path}: the path must begin with /, got {given.path!r}")
    return given.path or METRICS_PATH
