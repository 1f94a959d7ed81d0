"""The real Elasticsearch on this machine, without Docker: one node on a free port, gone with who started it."""

from __future__ import annotations

import base64
import os
import shutil
import ssl
import subprocess
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from infra.local.distribution import INSTEAD, fetch, find_java
from infra.local.processes import NotStarted, Process, Unavailable, new_folder

NOBODY = 65534
# It refuses to be root. The right over all files stays, for it and for what access(2) says: the project may lie in a
# folder that is root's alone.
NOT_ROOT = (
    "setpriv",
    f"--reuid={NOBODY}",
    f"--regid={NOBODY}",
    "--clear-groups",
    "--inh-caps=+dac_override",
    "--ambient-caps=+dac_override",
    "--securebits=+no_setuid_fixup",
)


@dataclass(frozen=True)
class Security:
    """TLS by PEM files, and the password of the user `elastic`."""

    certificate: Path
    key: Path
    password: str


class Elasticsearch(Process):
    """One node, empty at its start, with `address` on a free port of this machine."""

    def __init__(self, security: Security | None = None, heap: str = "1g"):
        java, user, home = find_java(), _as_other_user(), fetch()
        folder = new_folder("elasticsearch")
        self._security = security
        try:
            environment = _configure(folder, home, java, security, heap)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        super().__init__("elasticsearch", [*user, str(home / "bin" / "elasticsearch")], folder, environment)
        self.address = self.wait_until(self._answering)

    def restart(self, gently: bool = False) -> None:
        """Killed, or asked to end, and started with the same data on the same port; returns when it answers."""
        settings = self.folder / "config" / "elasticsearch.yml"
        port = self.address.rpartition(":")[2]
        settings.write_text(settings.read_text().replace("http.port: 0\n", f"http.port: {port}\n"))
        self._ports.unlink(missing_ok=True)
        self.kill_and_restart(gently)
        self.wait_until(self._answering)

    @property
    def _ports(self) -> Path:
        return self.folder / "logs" / "http.ports"

    def _answering(self) -> str:
        """Its address once it takes requests: it writes its port down before it does."""
        try:
            port = int(self._ports.read_text().split()[0].rpartition(":")[2])
        except (OSError, IndexError, ValueError):
            return ""
        address = f"{'https' if self._security else 'http'}://127.0.0.1:{port}"
        try:
            with self._opener().open(f"{address}/_cluster/health?wait_for_status=yellow&timeout=30s", timeout=40):
                return address
        except OSError:
            return ""

    def _opener(self) -> urllib.request.OpenerDirector:
        directly = urllib.request.ProxyHandler({})
        if self._security is None:
            return urllib.request.build_opener(directly)
        trust = ssl.create_default_context(cafile=str(self._security.certificate))
        trust.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # that certificate itself, whoever signed it
        opener = urllib.request.build_opener(directly, urllib.request.HTTPSHandler(context=trust))
        basic = base64.b64encode(f"elastic:{self._security.password}".encode()).decode()
        opener.addheaders = [("Authorization", f"Basic {basic}")]
        return opener


def _configure(folder: Path, home: Path, java: Path, security: Security | None, heap: str) -> dict[str, str]:
    """Its settings in `folder`, which it may write to; the environment that points it there."""
    config = folder / "config"
    shutil.copytree(home / "config", config)
    for name in ("data", "logs", "tmp"):
        (folder / name).mkdir()
    (config / "elasticsearch.yml").write_text("\n".join([*_settings(folder), *_secured(config, security)]) + "\n")
    environment = {
        "ES_JAVA_HOME": str(java),
        "ES_PATH_CONF": str(config),
        "ES_TMPDIR": str(folder / "tmp"),
        "ES_JAVA_OPTS": f"-Xms{heap} -Xmx{heap}",
        "HOME": str(folder),
    }
    if security:
        _add_password(home, environment, security.password)
    if _is_root():
        for path in (folder, *folder.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
    return environment


def _add_password(home: Path, environment: dict[str, str], password: str) -> None:
    command = [str(home / "bin" / "elasticsearch-keystore"), "add", "--stdin", "--force", "bootstrap.password"]
    run = subprocess.run(
        command, env={**os.environ, **environment}, input=f"{password}\n", capture_output=True, text=True
    )
    if run.returncode:
        raise NotStarted(f"Elasticsearch's keystore took no password: {' '.join(run.stderr.split())[:300]}")


def _settings(folder: Path) -> list[str]:
    return [
        "cluster.name: pause-local",
        "discovery.type: single-node",
        "network.host: 127.0.0.1",
        "http.port: 0",
        "transport.port: 0",
        "node.portsfile: true",
        # A laptop's disk is often fuller than Elasticsearch likes, and this index is small.
        "cluster.routing.allocation.disk.threshold_enabled: false",
        f"path.data: {folder / 'data'}",
        f"path.repo: {folder / 'snapshots'}",
        f"path.logs: {folder / 'logs'}",
    ]


def _secured(config: Path, security: Security | None) -> list[str]:
    if security is None:
        return ["xpack.security.enabled: false"]
    shutil.copy(security.certificate, config / "http.pem")
    shutil.copy(security.key, config / "http_key.pem")
    return [
        "xpack.security.enabled: true",
        "xpack.security.http.ssl.enabled: true",
        "xpack.security.http.ssl.certificate: http.pem",
        "xpack.security.http.ssl.key: http_key.pem",
        "xpack.security.transport.ssl.enabled: false",
    ]


def _is_root() -> bool:
    return os.geteuid() == 0


def _as_other_user() -> tuple[str, ...]:
    if not _is_root():
        return ()
    if shutil.which(NOT_ROOT[0]) is None:
        raise Unavailable(f"Elasticsearch refuses root and there is no `setpriv` here (util-linux); {INSTEAD}")
    return NOT_ROOT
