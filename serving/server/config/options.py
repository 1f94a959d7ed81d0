"""Flags named as tensorflow_model_server names them, and the text files they point at -> one frozen Options."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensorflow_serving.config.model_server_config_pb2 import ModelServerConfig

from common.command import Parser
from common.hosts import is_loopback
from model.contract import MODEL_NAME
from serving.server.config.files import (
    CORES,
    METRICS_PATH,
    PLATFORM,
    Batching,
    OptionsError,
    Tls,
    check_models,
    read_batching,
    read_metrics_path,
    read_models,
    read_tls,
)
from serving.storage.open import open_base

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Options:
    """All that a server was told, checked."""

    host: str
    port: int
    rest_port: int | None
    rest_timeout_seconds: float
    models: ModelServerConfig
    models_file: Path | None  # to be read again
    models_file_seconds: float
    poll_seconds: float  # 0: look once
    load_retries: int
    retry_seconds: float
    batching: Batching | None  # None: every request runs by itself
    tls: Tls | None
    metrics_path: str | None
    grpc_threads: int
    compile: bool
    stop_with_stdin: bool
    check_method_name: bool  # of a signature that is to classify or regress
    reload_roots: tuple[str, ...] | None  # what base paths must be below; None: no reload by gRPC


def parse(argv: list[str] | None = None) -> Options:
    """Leaves with exit code 2 or raises OptionsError, each with one line, before anything is loaded."""
    flags = parser().parse_args(argv)
    if flags.rest_api_port and flags.rest_api_port == flags.port:
        raise OptionsError(f"--port and --rest_api_port are both {flags.port}: gRPC and REST need a port each")
    models = _models(flags)
    tls = read_tls(Path(flags.ssl_config_file)) if flags.ssl_config_file else None
    return Options(
        host=flags.host,
        port=flags.port,
        rest_port=flags.rest_api_port or None,
        rest_timeout_seconds=flags.rest_api_timeout_in_ms / 1e3,
        models=models,
        models_file=_models_file(flags),
        models_file_seconds=flags.model_config_file_poll_wait_seconds,
        poll_seconds=flags.file_system_poll_wait_seconds,
        load_retries=flags.max_num_load_retries,
        retry_seconds=flags.load_retry_interval_micros / 1e6,
        batching=_batching(flags),
        tls=tls,
        metrics_path=_metrics_path(flags),
        grpc_threads=flags.grpc_max_threads,
        compile=flags.xla_cpu_compilation_enabled,
        stop_with_stdin=flags.stop_with_stdin,
        check_method_name=flags.enable_signature_method_name_check,
        reload_roots=_reload_roots(flags, models, tls),
    )


def parser() -> Parser:
    made = Parser(
        prog="python -m serving.server",
        description="Serve the exported model over gRPC and REST to any client of TensorFlow Serving.",
        epilog="example:\n  python -m serving.server --rest_api_port 8501 --model_base_path build/demo/serving/pause",
    )
    port, count, seconds = _number(0, 65535), _number(0), _number(0, kind=float)

    def add(name: str, kind: Callable[[str], Any], default: Any, about: str) -> None:
        switch: dict[str, Any] = {"nargs": "?", "const": True} if kind is _switch else {}
        value = "true|false" if switch else "FILE" if name.endswith("_file") else "TEXT" if kind is str else "N"
        about += "" if default is None else f" (default: {str(default).lower()})"
        made.add_argument(f"--{name}", type=kind, default=default, help=about, metavar=value, **switch)

    add("host", str, LOOPBACK, "address to listen on; 0.0.0.0 lets other machines in")
    add("port", port, 8500, "gRPC port; 0 takes a free one")
    add("rest_api_port", port, 0, "REST port; 0 leaves REST and metrics out")
    add("rest_api_timeout_in_ms", _number(1), 30_000, "how long a REST request may take")
    add("model_base_path", str, None, "folder or URL whose numbered folders are the versions of the model")
    add("model_name", str, None, f"what clients call that model (default: {MODEL_NAME})")
    add("keep_versions", _number(1), 1, "newest versions of that model to serve side by side")
    add("model_config_file", str, None, "text file naming the models, instead of --model_base_path")
    add("model_config_file_poll_wait_seconds", seconds, 0, "how often that file is read again; 0: only at the start")
    add("file_system_poll_wait_seconds", seconds, 1, "how often new versions are looked for; 0: only at the start")
    add("max_num_load_retries", count, 5, "how often a version that failed to load is tried again")
    add("load_retry_interval_micros", count, 60_000_000, "time between those tries")
    add("enable_batching", _switch, True, "encode texts of several requests in one run")
    add("batching_parameters_file", str, None, "text file with the sizes of runs and queue")
    add("ssl_config_file", str, None, "text file with key and certificate: gRPC is encrypted")
    add("monitoring_config_file", str, None, f"text file that moves the metrics from {METRICS_PATH}, or ends them")
    add("grpc_max_threads", _number(1), 4 * CORES, "threads that read requests and cut texts into tokens")
    add("xla_cpu_compilation_enabled", _switch, True, "compile the model for its usual shapes while it loads")
    add("enable_signature_method_name_check", _switch, False, "classify and regress by signatures meant for it only")
    add("allow_reload_by_grpc", _switch, False, "let clients change the models; other machines need certificates")
    add("reload_roots", str, None, "more folders or URLs, comma-separated, that reloaded models may be below")
    add("stop_with_stdin", _switch, False, "stop when standard input ends, for programs that start a server")
    return made


def _number(least: int, most: int | None = None, kind: type[int] | type[float] = int) -> Callable[[str], int | float]:
    def convert(text: str) -> int | float:
        accepted = f"a number from {least} to {most}" if most is not None else f"a number of at least {least}"
        try:
            value = kind(text)
        except ValueError:
            value = -1
        if not least <= value <= (float("inf") if most is None else most) or value == float("inf"):
            raise argparse.ArgumentTypeError(f"{accepted} is expected, got {text!r}")
        return value

    return convert


def _switch(text: str) -> bool:
    try:
        return {"true": True, "1": True, "false": False, "0": False}[text.lower()]
    except KeyError:
        raise argparse.ArgumentTypeError(f"true or false is expected, got {text!r}") from None


def _models(flags: argparse.Namespace) -> ModelServerConfig:
    if not flags.model_config_file:
        if not flags.model_base_path:
            raise OptionsError("no model to serve: name --model_base_path or --model_config_file")
        models = ModelServerConfig()
        name = flags.model_name or MODEL_NAME
        model = models.model_config_list.config.add(name=name, base_path=flags.model_base_path, model_platform=PLATFORM)
        model.model_version_policy.latest.num_versions = flags.keep_versions
        check_models(models)
    elif flags.model_base_path or flags.model_name or flags.keep_versions > 1:
        raise OptionsError(
            "--model_config_file names the models itself, and how many versions of each: leave out --model_base_path, "
            "--model_name and --keep_versions"
        )
    else:
        models = read_models(Path(flags.model_config_file))
    _check_there_is_a_version(models)
    return models


def _models_file(flags: argparse.Namespace) -> Path | None:
    if not flags.model_config_file_poll_wait_seconds:
        return None
    if not flags.model_config_file:
        raise OptionsError("--model_config_file_poll_wait_seconds is of use with --model_config_file only")
    return Path(flags.model_config_file)


def _check_there_is_a_version(models: ModelServerConfig) -> None:
    """One model of several may come later, but a server that has nothing at all to serve is a mistaken path."""
    paths = [model.base_path for model in models.model_config_list.config]
    if not paths:
        raise OptionsError("the model_config_list is empty: there is no model to serve")
    if any("://" in path and not path.startswith("file://") for path in paths):
        return  # looked at when it is polled
    try:
        if any(open_base(path).versions() for path in paths):
            return
    except OSError as error:
        raise OptionsError(f"base path {error.filename} cannot be read: {error.strerror}") from error
    raise OptionsError(
        f"base path {paths[0]} holds no version, that is no folder with a number for a name; "
        "`python -m model.export` and `python -m serving.publish` write them"
    )


def _reload_roots(flags: argparse.Namespace, models: ModelServerConfig, tls: Tls | None) -> tuple[str, ...] | None:
    more = [root.strip() for root in (flags.reload_roots or "").split(",") if root.strip()]
    if not flags.allow_reload_by_grpc:
        if more:
            raise OptionsError("--reload_roots is of use with --allow_reload_by_grpc only")
        return None
    if not (tls and tls.verify_client) and not is_loopback(flags.host):
        raise OptionsError(
            f"--allow_reload_by_grpc at --host {flags.host} lets any machine change the models: name --ssl_config_file "
            f"with client_verify: true, or --host {LOOPBACK}"
        )
    return (*(model.base_path for model in models.model_config_list.config), *more)


def _batching(flags: argparse.Namespace) -> Batching | None:
    if not flags.batching_parameters_file:
        return Batching() if flags.enable_batching else None
    if not flags.enable_batching:
        raise OptionsError("--batching_parameters_file and --enable_batching=false contradict each other")
    return read_batching(Path(flags.batching_parameters_file))


def _metrics_path(flags: argparse.Namespace) -> str | None:
    if not flags.monitoring_config_file:
        return METRICS_PATH if flags.rest_api_port else None
    path = read_metrics_path(Path(flags.monitoring_config_file))
    if path and not flags.rest_api_port:
        raise OptionsError("--monitoring_config_file: metrics are served by REST, name --rest_api_port")
    return path
