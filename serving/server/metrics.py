"""Prometheus metrics of the server: TensorFlow Serving's names where it has them, `pause_` for our own."""

from __future__ import annotations

import grpc
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

CONTENT_TYPE = "text/plain"
UNKNOWN_MODEL = "unknown"
REQUEST_COUNT = ":tensorflow:serving:request_count"

# TensorFlow Serving's words for what is asked.
_API = {
    "predict": "Predict",
    "classify": "Classify",
    "regress": "Regress",
    "multi_inference": "MultiInference",
    "metadata": "GetModelMetadata",
    "status": "GetModelStatus",
    "reload": "HandleReloadConfigRequest",
}
_PREDICTIONS = ("predict", "classify", "regress")
# The unit and the bounds of TensorFlow Serving, 10 us to 20 minutes: under its names, dashboards made for it must hold.
_MICROSECONDS = [float(f"{10 * 1.8**power:.6g}") for power in range(33)]
_ROWS = [2**power for power in range(11)]
_FILL = [tenths / 10 for tenths in range(1, 11)]


class Metrics:
    """Takes note from any thread."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each, which nobody asks for
        self._registry = registry = CollectorRegistry()
        # A Gauge that only grows: the library's Counter would add `_total` to the name.
        self._requests = Gauge(
            REQUEST_COUNT, "Predictions asked for, by how they ended.", ["model_name", "status"], registry=registry
        )
        self._request_latency = Histogram(
            ":tensorflow:serving:request_latency",
            "Microseconds from a request's arrival to its answer.",
            ["model_name", "API", "entrypoint", "status"],
            registry=registry,
            buckets=_MICROSECONDS,
        )
        self._runtime_latency = Histogram(
            ":tensorflow:serving:runtime_latency",
            "Microseconds that TensorFlow took for one run.",
            ["model_name", "API", "runtime"],
            registry=registry,
            buckets=_MICROSECONDS,
        )
        self._add_batches(registry)
        self._add_versions(registry)

    def add_process(self) -> None:
        """Memory and time of the process, which a server has to itself."""
        ProcessCollector(registry=self._registry)

    def _add_batches(self, registry: CollectorRegistry) -> None:
        by_model = ["model_name"]
        self._rows = Histogram("pause_batch_rows", "Texts in one run.", by_model, registry=registry, buckets=_ROWS)
        self._fill = Histogram(
            "pause_batch_fill",
            "Texts in one run, of those it had room for.",
            by_model,
            registry=registry,
            buckets=_FILL,
        )
        # Padding waste is 1 - real / padded.
        self._real = Counter("pause_real_tokens", "Tokens of texts that ran.", by_model, registry=registry)
        self._padded = Counter("pause_padded_tokens", "Tokens that ran, padding included.", by_model, registry=registry)
        self._queue = Gauge("pause_queue_texts", "Texts that wait for a run.", registry=registry)

    def _add_versions(self, registry: CollectorRegistry) -> None:
        self._version = Gauge(
            "pause_version",
            "1 for the state that a version is in.",
            ["model_name", "version", "state", "fingerprint"],
            registry=registry,
        )
        self._load_failures = Counter(
            "pause_load_failures", "Loads that failed.", ["model_name", "version"], registry=registry
        )
        self._names: set[str] = set()

    def requested(self, model: str, method: str, entrypoint: str, code: grpc.StatusCode, seconds: float) -> None:
        """`method` as predict, metadata, status; `entrypoint` GRPC or REST. A model that no version was announced of
        is counted as unknown: whoever asks for made-up names must not make the page grow."""
        name = model if model in self._names else UNKNOWN_MODEL
        if method in _PREDICTIONS:
            self._requests.labels(name, code.name).inc()
        latency = self._request_latency.labels(name, _API.get(method, method), entrypoint, code.name)
        latency.observe(seconds * 1e6)

    def ran(self, model: str, rows: int, capacity: int, real_tokens: int, padded_tokens: int, seconds: float) -> None:
        """One run of `rows` texts where `capacity` had room."""
        self._rows.labels(model).observe(rows)
        self._fill.labels(model).observe(rows / capacity)
        self._real.labels(model).inc(real_tokens)
        self._padded.labels(model).inc(padded_tokens)
        self._runtime_latency.labels(model, "Predict", "TF2").observe(seconds * 1e6)

    def queued(self, texts: int) -> None:
        """How many texts wait now."""
        self._queue.set(texts)

    def version(self, model: str, number: int, state: str, fingerprint: str) -> None:
        """A version's present state takes the place of its former one."""
        self._names.add(model)
        self._version.remove_by_labels(_of_version(model, number))
        self._version.labels(model, str(number), state, fingerprint).set(1)

    def forget(self, model: str, number: int) -> None:
        """A version that is no more leaves the page, or it would grow with every one there ever was."""
        self._version.remove_by_labels(_of_version(model, number))
        self._load_failures.remove_by_labels(_of_version(model, number))

    def load_failed(self, model: str, number: int) -> None:
        self._load_failures.labels(model, str(number)).inc()

    def exposition(self) -> bytes:
        """The page, in Prometheus' text format."""
        named = f"# TYPE {REQUEST_COUNT} "
        return generate_latest(self._registry).replace(f"{named}gauge".encode(), f"{named}counter".encode())


def _of_version(model: str, number: int) -> dict[str, str]:
    return {"model_name": model, "version": str(number)}
