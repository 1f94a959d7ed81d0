"""A real API server, built from Go modules, beside Debian's etcd: it takes each overlay as a cluster would, and refuses
what no schema knows of."""

from __future__ import annotations

import re
import secrets
import shutil
import ssl
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from common.ports import free_port
from infra.checks.cluster.render import Overlay, Pod, overlays
from infra.checks.cluster.schemas import DEFINITIONS, definition
from infra.local.debian import debian_tool
from infra.local.go import build
from infra.local.processes import NotStarted, Process, new_folder

SOURCE = Path(__file__).with_name("programs")
PROGRAMS = "k8s.io/kubernetes/cmd"
APPLY_SECONDS = 180


def version() -> str:
    """Of Kubernetes, as the module requires it."""
    (found,) = re.findall(r"k8s\.io/kubernetes (v[\d.]+)", (SOURCE / "go.mod").read_text())
    return str(found)


def program(name: str) -> Path:
    return build(name, version(), [f"{PROGRAMS}/{name}"], SOURCE)


class Etcd(Process):
    """Where the server keeps its objects."""

    def __init__(self) -> None:
        folder, port = new_folder("etcd"), free_port()
        self.address = f"http://127.0.0.1:{port}"
        peer = f"http://127.0.0.1:{free_port()}"
        command = [
            str(debian_tool("etcd", "etcd-server")), "--data-dir", str(folder / "data"), "--unsafe-no-fsync",
            "--listen-client-urls", self.address, "--advertise-client-urls", self.address,
            "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}",
        ]  # fmt: skip
        super().__init__("etcd", command, folder)
        self.wait_until(self._healthy)

    def _healthy(self) -> bool:
        return _answers(urllib.request.Request(f"{self.address}/health"))


class ApiServer(Process):
    """Admission as in a cluster, Pod Security included; whoever has the token may do anything."""

    def __init__(self, etcd: Etcd) -> None:
        binary, folder, port = program("kube-apiserver"), new_folder("apiserver"), free_port()
        self.address, self.token, key = f"https://127.0.0.1:{port}", secrets.token_hex(16), folder / "accounts.pem"
        (folder / "tokens").write_text(f"{self.token},admin,admin,system:masters\n")
        key.write_bytes(_private_key())
        command = [
            str(binary), f"--etcd-servers={etcd.address}", "--bind-address=127.0.0.1", f"--secure-port={port}",
            f"--cert-dir={folder / 'certificates'}", f"--token-auth-file={folder / 'tokens'}",
            "--authorization-mode=RBAC", "--service-cluster-ip-range=10.0.0.0/24", "--endpoint-reconciler-type=none",
            f"--service-account-issuer={self.address}", f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
        ]  # fmt: skip
        super().__init__("kube-apiserver", command, folder)
        self.wait_until(self._ready)

    def _ready(self) -> bool:
        headers = {"Authorization": f"Bearer {self.token}"}
        return _answers(urllib.request.Request(f"{self.address}/readyz", headers=headers))

    def command(self) -> list[str]:
        """kubectl, for this server alone."""
        authority = self.folder / "certificates" / "apiserver.crt"
        return [
            _kubectl(), f"--server={self.address}", f"--token={self.token}", f"--certificate-authority={authority}",
            "--tls-server-name=kubernetes", f"--cache-dir={self.folder / 'cache'}",
        ]  # fmt: skip

    def kubectl(self, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        # Not with the settings of whoever runs this: a cluster of his own must not be asked.
        own = {"KUBECONFIG": "", "HOME": str(self.folder), "PATH": "/usr/bin:/bin"}
        return subprocess.run(
            [*self.command(), *arguments], input=given, env=own, capture_output=True, text=True, timeout=APPLY_SECONDS
        )


def _private_key() -> bytes:
    """For the tokens of service accounts."""
    made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return made.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())


def _kubectl() -> str:
    return shutil.which("kubectl") or str(program("kubectl"))


def _answers(request: urllib.request.Request) -> bool:
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE  # it has made its certificate this moment
    handlers = (urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trust))
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=5):
            return True
    except OSError:
        return False


@contextmanager
def api_server() -> Iterator[ApiServer]:
    """With the kinds of both operators."""
    with Etcd() as etcd, ApiServer(etcd) as server:
        for kind in DEFINITIONS:
            # By the server: such a definition is too large for the note that a client's apply leaves behind.
            run = server.kubectl("apply", "--server-side", "--filename=-", given=yaml.safe_dump(definition(kind)))
            if run.returncode:
                raise NotStarted(f"the definition of {kind} was not taken: {run.stderr.strip()}")
        server.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
        yield server


def refused_by_server(root: Path) -> list[str]:
    rendered = overlays(root)
    with api_server() as server:
        return [found for overlay in rendered for found in _refused(server, overlay)]


def _refused(server: ApiServer, overlay: Overlay) -> Iterator[str]:
    """Rehearsed, then applied: so each overlay must also be a legal change of the one before it."""
    space, rest = overlay.of("Namespace"), [one for one in overlay.objects if one["kind"] != "Namespace"]
    # Nobody is here to bind a claim, and only a bound one may grow.
    changed = [one for one in rest if one["kind"] != "PersistentVolumeClaim"]
    strict = ("--validate=strict", "--filename=-")
    yield from _said(overlay, server.kubectl("apply", *strict, given=yaml.safe_dump_all(space)))
    yield from _said(overlay, server.kubectl("apply", "--dry-run=server", *strict, given=yaml.safe_dump_all(rest)))
    yield from _said(overlay, server.kubectl("apply", *strict, given=yaml.safe_dump_all(changed)))
    # Of what a Deployment would make, Pod Security only warns; a pod it refuses.
    for pod in overlay.pods():
        if not pod.owner.startswith("Elasticsearch/"):
            yield from _said(overlay, server.kubectl("create", "--dry-run=server", *strict, given=_as_pod(pod)))


def _as_pod(pod: Pod) -> str:
    metadata = {"name": pod.owner.partition("/")[2], "namespace": "pause", "labels": pod.labels}
    return yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod.spec})


def _said(overlay: Overlay, run: subprocess.CompletedProcess[str]) -> Iterator[str]:
    """Its warnings, too; what it quotes below one belongs to it."""
    told = [" ".join(part.split()) for part in re.split(r"^(?=The |Warning|[Ee]rror)", run.stderr, flags=re.MULTILINE)]
    yield from (f"{overlay.name}: the API server says: {one}" for one in told if one)
    if run.returncode and not any(told):
        yield f"{overlay.name}: kubectl ended with {run.returncode}"
