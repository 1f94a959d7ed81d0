"""Certificates for servers with TLS."""

import pytest
from certificates import write_certificates


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    return write_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def strangers(tmp_path_factory):
    """Signed by an authority that nobody here knows."""
    return write_certificates(tmp_path_factory.mktemp("strangers"))
