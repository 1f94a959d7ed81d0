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


@pytest.fixture
def victim(tmp_path):
    """Somebody else's folder, with a number for a name as versions have."""
    folder = tmp_path / "victim" / "7"
    folder.mkdir(parents=True)
    (folder / "letters.txt").write_text("kept")
    return folder
