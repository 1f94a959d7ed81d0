"""The server itself behind TLS: whom it lets in, and who can trust it."""

import numpy as np
import pytest
from embedded import EmbeddedServer

from serving.client import EmbeddingClient
from serving.endpoint.channel import ServingUnavailable
from serving.endpoint.connection import TlsFiles

TEXTS = ["bank loans", "beer ale lager", "car engine"]


def start(base, config, **fields):
    """The server with an SSLConfig of these fields."""
    config.write_text("\n".join(f"{name}: {value}" for name, value in fields.items()))
    flags = ("--ssl_config_file", str(config), "--xla_cpu_compilation_enabled=false")
    return EmbeddedServer(base, *flags, rest=False)


@pytest.fixture(scope="module")
def expected(exports):
    from serving.server.models.loaded import LoadedModel

    return LoadedModel(exports[0]).encode([text.encode() for text in TEXTS])


def embed(server, tls, deadline=60):
    with EmbeddingClient([server.address], tls=tls, deadline=deadline) as client:
        return client.embed(TEXTS)[0]


def let_in(server, tls) -> bool:
    try:
        embed(server, tls, deadline=1)
    except ServingUnavailable as error:
        assert "TLS" in str(error)
        return False
    return True


def test_tls_lets_in_whoever_trusts_its_authority_and_nobody_in_the_clear(
    base, certificates, strangers, expected, tmp_path
):
    config = tmp_path / "ssl.config"
    with start(
        base, config, server_key=f'"{certificates.server_key}"', server_cert=f'"{certificates.server}"'
    ) as server:
        assert np.abs(embed(server, TlsFiles(str(certificates.authority))) - expected).max() < 1e-5
        for tls in (None, TlsFiles(str(strangers.authority))):
            assert not let_in(server, tls)


def test_mutual_tls_lets_in_only_those_whose_certificate_its_authority_signed(
    base, certificates, strangers, expected, tmp_path
):
    fields = {
        "server_key": certificates.server_key,
        "server_cert": certificates.server,
        "custom_ca": certificates.authority,
    }
    written = {name: f'"{path}"' for name, path in fields.items()}
    authority = str(certificates.authority)
    with start(base, tmp_path / "ssl.config", **written, client_verify="true") as server:
        known = TlsFiles(authority, str(certificates.client), str(certificates.client_key))
        assert np.abs(embed(server, known) - expected).max() < 1e-5
        for tls in (None, TlsFiles(authority), TlsFiles(authority, str(strangers.client), str(strangers.client_key))):
            assert not let_in(server, tls)
