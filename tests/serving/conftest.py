"""Certificates for servers with TLS, and endpoints that end with their test."""

from contextlib import ExitStack

import pytest
from certificates import write_certificates
from encoder import Encoder


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    return write_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def strangers(tmp_path_factory):
    """Signed by an authority that nobody here knows."""
    return write_certificates(tmp_path_factory.mktemp("strangers"))


@pytest.fixture
def victim(tmp_path):
    """Somebody else's folder, with a number for a name as versions have."""
    folder = tmp_path / "victim" / "7"
    folder.mkdir(parents=True)
    (folder / "letters.txt").write_text("kept")
    return folder


@pytest.fixture
def started():
    """Makes endpoints, and ends them."""
    with ExitStack() as stack:

        def start(*arguments, **options):
            encoder = Encoder(*arguments, **options)
            stack.callback(encoder.stop)
            return encoder

        yield start
