"""The proxy's settings in a real nginx on this machine, in front of a server that tells what reached it."""

from __future__ import annotations

import json
import os
import shutil
import ssl
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from common.ports import free_port
from infra.local import processes
from infra.local.debian import debian_tool
from infra.local.processes import Unavailable, alone

SETTINGS = Path("infra/compose/nginx.conf")
NOBODY = 65534
START_SECONDS = 20.0


class Mirror(BaseHTTPRequestHandler):
    """Answers with the headers that it was sent."""

    def do_GET(self) -> None:
        said = json.dumps({name.lower(): value for name, value in self.headers.items()}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_: object) -> None:
        pass


def nginx() -> Path:
    """Unpacked, not installed: Debian's package would start it as a service of this machine."""
    found = shutil.which("nginx")
    if found:
        return Path(found)
    folder = processes.ROOT / "build" / "local" / "nginx"
    folder.mkdir(parents=True, exist_ok=True)
    with alone(folder / "lock"):
        if not (folder / "usr" / "sbin" / "nginx").exists():
            unpack = f'cd "{folder}" && apt-get download nginx && dpkg-deb --extract nginx_*.deb .'
            run = subprocess.run(["bash", "-c", unpack], capture_output=True, text=True)
            if run.returncode:
                raise Unavailable(f"there is no nginx here, and none to be had: {' '.join(run.stderr.split())[-200:]}")
    return folder / "usr" / "sbin" / "nginx"


def settings(root: Path, folder: Path, port: int, behind: int) -> Path:
    """As they are, but for ports, names and paths that only containers have."""
    text = (root / SETTINGS).read_text()
    for theirs, ours in {
        "/tmp/": f"{folder}/",  # first: the folder itself may be below it
        "search:8000": f"127.0.0.1:{behind}",
        "listen 8443": f"listen 127.0.0.1:{port}",
        "/run/secrets/proxy_certificate": f"{folder}/secrets/proxy.pem",
        "/run/secrets/proxy_key": f"{folder}/secrets/proxy.key",
    }.items():
        if theirs not in text:
            raise Unavailable(f"{SETTINGS} does not say {theirs}, which this check puts right for this machine")
        text = text.replace(theirs, ours)
    path = folder / "nginx.conf"
    path.write_text(text)
    return path


def proxy(root: Path) -> list[str]:
    """TLS alone, the caller's true address, no metrics: asked of the program itself."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run(["bash", str(root / "infra/compose/secrets.sh"), str(folder / "secrets")], check=True)
        with ThreadingHTTPServer(("127.0.0.1", 0), Mirror) as mirror:
            threading.Thread(target=mirror.serve_forever, args=[0.05], daemon=True).start()
            port = free_port()
            path = settings(root, folder, port, mirror.server_port)
            for each in (folder, *folder.rglob("*")):
                os.chown(each, NOBODY, NOBODY)
            user = [str(debian_tool("setpriv", "util-linux")), f"--reuid={NOBODY}", "--clear-groups"]
            command = [*user, str(nginx()), "-e", "stderr", "-c", str(path), "-g", "daemon off;"]
            server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
            try:
                said = _questions(f"https://localhost:{port}", folder / "secrets" / "ca.pem", server)
            finally:
                server.terminate()
                errors = server.communicate(timeout=30)[1]
            mirror.shutdown()
    return [f"{SETTINGS}: {line}" for line in (*said, *(line for line in errors.splitlines() if "[e" in line))]


def _questions(url: str, authority: Path, server: subprocess.Popen[str]) -> list[str]:
    trust = urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=str(authority)))
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), trust)
    deadline = time.monotonic() + START_SECONDS
    lie = urllib.request.Request(f"{url}/v1/status", headers={"X-Forwarded-For": "203.0.113.9"})
    while True:
        try:
            with opener.open(lie, timeout=5) as answer:
                seen, sent = json.load(answer), answer.headers
            break
        except OSError as error:
            if server.poll() is not None or time.monotonic() > deadline:
                return [f"nginx does not answer: {error}"]
            time.sleep(0.1)
    wrong = [] if seen.get("x-forwarded-for") == "127.0.0.1" else ["a caller may say which address it has"]
    wrong += [] if seen.get("host") == urlsplit(url).netloc else ["the Host header does not reach search"]
    wrong += [] if sent.get("Strict-Transport-Security") else ["browsers are not told to stay with https"]
    try:
        opener.open(f"{url}/metrics", timeout=5).close()
        wrong.append("metrics are open to the world")
    except urllib.error.HTTPError as error:
        wrong += [] if error.code == 404 else [f"metrics answer {error.code}"]
    return wrong
