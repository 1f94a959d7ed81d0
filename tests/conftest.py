"""A small trained model, its exports, and one server for all tests that only ask."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from dead_workers import pytest_runtest_logreport  # noqa: F401  (a hook)
from embedded import EmbeddedServer
from made_once import made_once
from real_servers import running
from trades import TINY, write_pairs

from common.cpu import cap_instruction_set
from infra.local.elasticsearch import Elasticsearch
from serving.tracing import spans

# Before any test imports TensorFlow, and for all processes that tests start.
cap_instruction_set()


@pytest.fixture(scope="session")
def similar_pairs(tmp_path_factory) -> Path:
    return made_once(tmp_path_factory, "pairs", lambda folder: write_pairs(folder / "similar.tsv")) / "similar.tsv"


@pytest.fixture(scope="session")
def trained(similar_pairs, tmp_path_factory) -> Path:
    """A small trained model's directory."""
    from model.train import main

    def train(folder: Path) -> None:
        arguments = ["--pairs", str(similar_pairs), "--out", str(folder / "run"), "--prior", "0.33"]
        assert main([*arguments, *TINY, "--contrastive", "1", "--epochs", "6", "--dev", "20%"]) == 0

    return made_once(tmp_path_factory, "trained", train) / "run"


@pytest.fixture(scope="session")
def exports(trained, tmp_path_factory):
    """Three version directories with weights of their own each, so that a text has another vector in each."""
    from model.export import export
    from model.network.saved import open_model

    def export_three(folder: Path) -> None:
        generator = np.random.default_rng(3)
        for _ in range(3):
            model = open_model(str(trained))
            for weight in model.encoder.source.body.trainable_weights:
                weight.assign_add(generator.normal(0, 0.02, weight.shape).astype(np.float32))
            export(model, folder / "pause", {})

    base = made_once(tmp_path_factory, "exports", export_three) / "pause"
    return [base / version for version in ("1", "2", "3")]


@pytest.fixture(scope="session")
def base(exports, tmp_path_factory):
    """A base path with one version."""
    path = tmp_path_factory.mktemp("base") / "pause"
    shutil.copytree(exports[0], path / "1")
    return path


@pytest.fixture(scope="session")
def server(base):
    """Shared: tests must not change what it serves."""
    with EmbeddedServer(base) as running:
        yield running


@pytest.fixture(scope="session")
def elasticsearch_server():
    """Shared: each test has aliases of its own."""
    with running(Elasticsearch) as server:
        yield server


@pytest.fixture
def exported():
    """Tracing is on in this process; spans, as they end. What looks once whether it is on is asked for after this."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    spans.use(provider.get_tracer("test"))
    try:
        yield exporter.get_finished_spans
    finally:
        spans.use(None)
