"""Small exported models that tell themselves apart, and one server for all tests that only ask."""

import numpy as np
import pytest
from certificates import write_certificates
from embedded import EmbeddedServer


@pytest.fixture(scope="session")
def exports(trained, tmp_path_factory):
    """Three version directories with weights of their own each, so that a text has another vector in each."""
    from model.export import export
    from model.saved import open_model

    base = tmp_path_factory.mktemp("exports") / "pause"
    generator = np.random.default_rng(3)
    versions = []
    for _ in range(3):
        model = open_model(str(trained))
        for weight in model.encoder.source.body.trainable_weights:
            weight.assign_add(generator.normal(0, 0.02, weight.shape).astype(np.float32))
        versions.append(export(model, base, {}))
    return versions


@pytest.fixture(scope="session")
def base(exports, tmp_path_factory):
    """A base path with one version."""
    import shutil

    path = tmp_path_factory.mktemp("base") / "pause"
    shutil.copytree(exports[0], path / "1")
    return path


@pytest.fixture(scope="session")
def server(base):
    """Shared: tests must not change what it serves."""
    with EmbeddedServer(base) as running:
        yield running


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    return write_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def strangers(tmp_path_factory):
    """Signed by an authority that nobody here knows."""
    return write_certificates(tmp_path_factory.mktemp("strangers"))
