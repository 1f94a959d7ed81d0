"""Google Cloud Storage on this machine: fake-gcs-server, which speaks its JSON protocol and keeps all in memory."""

from __future__ import annotations

import urllib.request
from pathlib import Path

from common.ports import free_port
from infra.local.go import build
from infra.local.processes import Process, new_folder

PACKAGE, RELEASE = "github.com/fsouza/fake-gcs-server", "v1.56.1"
SECONDS = 10.0


class FakeGcs(Process):
    """Without buckets at its start. Clients find it by STORAGE_EMULATOR_HOST, which is to be its `address`; gcsfs is to
    be told besides that there is nobody to ask for a token: FSSPEC_GS_TOKEN=anon."""

    def __init__(self) -> None:
        port = free_port()  # with port 0 it would not say which one it took
        where = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(port)]
        command = [str(fake_gcs_binary()), *where, "-backend", "memory", "-log-level", "warn"]
        super().__init__("fake-gcs", command, new_folder("fake-gcs"))
        self._url = f"http://127.0.0.1:{port}"
        self.address = self.wait_until(self._answering)

    def make_bucket(self, name: str) -> None:
        request = urllib.request.Request(
            f"{self.address}/storage/v1/b?project=local",
            data=f'{{"name": "{name}"}}'.encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=SECONDS):
            pass

    def _answering(self) -> str:
        try:
            with urllib.request.urlopen(f"{self._url}/_internal/healthcheck", timeout=SECONDS):
                return self._url
        except OSError:
            return ""


def fake_gcs_binary() -> Path:
    return build("fake-gcs", RELEASE, [f"{PACKAGE}@{RELEASE}"])
