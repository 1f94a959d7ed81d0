"""Starts the parts in order, waits for the signal to stop, and lets every request finish."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import uvicorn
from grpc import aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from common.errors import InputError
from common.ports import listen
from serving.server.api.inference import ExampleInference
from serving.server.api.predict import Predictor
from serving.server.api.reload import Reload
from serving.server.api.rest import create_app
from serving.server.api.rpc import MODEL, PREDICTION, create_server
from serving.server.compute.batching import Batcher
from serving.server.config.config_file import follow
from serving.server.config.files import CORES, Batching
from serving.server.config.options import Options
from serving.server.metrics import Metrics
from serving.server.models.loading import Loading
from serving.server.models.registry import Models

DRAIN_SECONDS = 30
HEALTH_SECONDS = 0.5

log = logging.getLogger(__name__)


async def serve(options: Options) -> None:
    """Returns after SIGTERM or SIGINT, when all requests have been answered."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(options.grpc_threads))
    stopping = _stop_event(options.stop_with_stdin)
    metrics = Metrics()
    metrics.add_process()
    batching = options.batching or Batching()
    loading = Loading(options.compile, batching.max_texts, CORES, options.load_retries, options.retry_seconds)
    models = Models(options.models, loading, options.poll_seconds, metrics)
    batcher = Batcher(options.batching, metrics)
    predictor = Predictor(models, batcher)
    examples = ExampleInference(predictor, options.check_method_name)
    server = create_server(models, predictor, examples, Reload(models, options.reload_roots), metrics)
    health_service = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(health_service, server)
    # Ports first: one that is in use is known at once, not after the model has been loaded and compiled.
    port = _bind(server, options)
    app = create_app(models, predictor, examples, metrics, options.metrics_path, options.rest_timeout_seconds)
    with _rest_socket(options) as rest_socket:
        await asyncio.to_thread(models.start)
        await server.start()
        background = [asyncio.create_task(_watch_health(models, health_service))]
        if options.models_file:
            following = follow(options.models_file, options.models_file_seconds, models, options.models)
            background.append(asyncio.create_task(following))
        # No warnings: there is one for every request that is no HTTP, and a stranger could fill the disk with them.
        rest = _Rest(uvicorn.Config(app, log_level="error", access_log=False))
        responding = asyncio.create_task(rest.serve([rest_socket])) if rest_socket else None
        rest_note = f", REST at {options.host}:{rest_socket.getsockname()[1]}" if rest_socket else ""
        log.info("ready: gRPC at %s:%d%s", options.host, port, rest_note)

        await stopping.wait()
        log.info("stopping: requests that have begun are finished")
        for task in background:
            task.cancel()
        await health_service.enter_graceful_shutdown()
        await server.stop(DRAIN_SECONDS)
        if responding:
            rest.should_exit = True
            await responding
    await asyncio.to_thread(models.stop)
    await asyncio.to_thread(batcher.close)


def _stop_event(with_stdin: bool) -> asyncio.Event:
    loop, stopping = asyncio.get_running_loop(), asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stopping.set)

    def read() -> None:
        if not os.read(sys.stdin.fileno(), 4096):
            loop.remove_reader(sys.stdin)
            stopping.set()

    if with_stdin:
        loop.add_reader(sys.stdin, read)
    return stopping


class _Rest(uvicorn.Server):
    """Leaves the signals to whoever started it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _bind(server: aio.Server, options: Options) -> int:
    host = f"[{options.host}]" if ":" in options.host else options.host  # IPv6
    address = f"{host}:{options.port}"
    try:
        if options.tls is None:
            return int(server.add_insecure_port(address))
        pairs = [(options.tls.key, options.tls.certificate)]
        credentials = grpc.ssl_server_credentials(pairs, options.tls.authority, options.tls.verify_client)
        return int(server.add_secure_port(address, credentials))
    except RuntimeError as error:
        raise InputError(f"--port {options.port} cannot be listened on: is another server using it?") from error


@contextlib.contextmanager
def _rest_socket(options: Options) -> Iterator[socket.socket | None]:
    if options.rest_port is None:
        yield None
        return
    with listen("--rest_api_port", options.host, options.rest_port) as listening:
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else every answer is held back for 40 ms
        yield listening


async def _watch_health(models: Models, service: health.aio.HealthServicer) -> None:
    """Load balancers ask this way whether to send requests here."""
    while True:
        status = health_pb2.HealthCheckResponse.SERVING if models.ready else health_pb2.HealthCheckResponse.NOT_SERVING
        for name in ("", PREDICTION, MODEL):
            await service.set(name, status)
        await asyncio.sleep(HEALTH_SECONDS)
