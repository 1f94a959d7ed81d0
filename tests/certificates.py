"""Certificates for servers and clients on this machine, made anew for a test."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


@dataclass(frozen=True)
class Certificates:
    """PEM files: an authority, and what it signed for a server at 127.0.0.1 or localhost and for a client."""

    authority: Path
    server: Path
    server_key: Path
    client: Path
    client_key: Path


def write_certificates(directory: Path) -> Certificates:
    directory.mkdir(parents=True, exist_ok=True)
    issuer, issuer_key = _name("test authority"), ec.generate_private_key(ec.SECP256R1())
    constraints = x509.BasicConstraints(ca=True, path_length=0)
    authority = _builder(issuer, issuer, issuer_key).add_extension(constraints, critical=True)
    files = Certificates(
        *(directory / f"{name}.pem" for name in ("authority", "server", "server_key", "client", "client_key"))
    )
    files.authority.write_bytes(_signed(authority, issuer_key))
    for holder, usage, certificate, key_file in (
        ("server", ExtendedKeyUsageOID.SERVER_AUTH, files.server, files.server_key),
        ("client", ExtendedKeyUsageOID.CLIENT_AUTH, files.client, files.client_key),
    ):
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_name(holder), issuer, key)
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        certificate.write_bytes(_signed(builder.add_extension(_this_machine(), critical=False), issuer_key))
        key_file.write_bytes(_key_bytes(key))
    return files


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _this_machine() -> x509.SubjectAlternativeName:
    return x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.IPv4Address("127.0.0.1"))])


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
    )


def _signed(builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey) -> bytes:
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _key_bytes(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
