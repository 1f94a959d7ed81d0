"""The scripts that containers of compose.yaml run, against servers that remember what they were asked."""

import base64
import json
import os
import shutil
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from real_servers import available

from infra.checks.containers.proxy import nginx, proxy

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "infra" / "compose"


class Handler(BaseHTTPRequestHandler):
    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append((self.path, json.loads(body), self.headers.get("Authorization")))
        self.send_response(self.server.statuses.get(self.path, 200))
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.asked, server.statuses = [], {}
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        yield server
        server.shutdown()


# users of Elasticsearch


@pytest.fixture
def secrets(tmp_path):
    """As they are mounted."""
    subprocess.run(["bash", str(SCRIPTS / "secrets.sh"), str(tmp_path / "secrets")], check=True)
    (tmp_path / "secrets" / "ca.pem").rename(tmp_path / "secrets" / "ca")
    return tmp_path / "secrets"


def make_users(server, secrets):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(secrets / "elasticsearch.pem", secrets / "elasticsearch.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    command = ["bash", str(SCRIPTS / "users.sh"), f"https://localhost:{server.server_port}"]
    return subprocess.run(command, env={**os.environ, "SECRETS": str(secrets)}, capture_output=True, text=True)


def test_each_part_gets_a_user_of_its_own_role_by_its_own_password(server, secrets):
    run = make_users(server, secrets)
    assert run.returncode == 0, run.stderr
    asked = {path: body for path, body, _ in server.asked}
    assert list(asked) == [
        f"/_security/{kind}/pause_{part}" for part in ("pipeline", "search") for kind in ("role", "user")
    ]
    for part in ("pipeline", "search"):
        password = (secrets / f"{part}_password").read_text()
        assert asked[f"/_security/user/pause_{part}"] == {"password": password, "roles": [f"pause_{part}"]}
    rights = {index["names"][0]: index["privileges"] for index in asked["/_security/role/pause_search"]["indices"]}
    assert "write" not in rights["companies"] and "all" not in rights["companies"]


def test_users_are_made_by_elastic_whose_password_is_on_no_command_line(server, secrets):
    run = make_users(server, secrets)
    password = (secrets / "elastic_password").read_text()
    basic = base64.b64encode(f"elastic:{password}".encode()).decode()
    assert {who for _, _, who in server.asked} == {f"Basic {basic}"}
    assert password not in run.stdout + run.stderr


def test_a_refusal_fails_the_job_so_that_nobody_starts_without_rights(server, secrets):
    server.statuses["/_security/user/pause_pipeline"] = 400
    assert make_users(server, secrets).returncode != 0


# topics of the emulator


def make_topics(server):
    command = ["bash", str(SCRIPTS / "topics.sh"), f"http://127.0.0.1:{server.server_port}", "pause-local"]
    return subprocess.run(command, capture_output=True).returncode


def test_topics_and_subscriptions_are_those_that_the_pipeline_is_told(server):
    assert make_topics(server) == 0
    made = {path.removeprefix("/v1/") for path, _, _ in server.asked}
    text = (ROOT / "infra" / "compose.yaml").read_text()
    named = {word.partition("=")[2] for word in text.split() if "=projects/" in word}
    assert named and named <= made
    topics = {body["topic"] for path, body, _ in server.asked if "subscriptions" in path}
    assert topics <= made


def test_topics_that_are_there_are_well_and_an_emulator_in_trouble_is_not(server):
    path = "/v1/projects/pause-local/topics/companies"
    server.statuses[path] = 409
    assert make_topics(server) == 0
    server.statuses[path] = 500
    assert make_topics(server) != 0


# the publisher


@pytest.fixture
def publish(tmp_path, monkeypatch):
    """Runs the script with a `python` that says what it was told."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "bin" / "python").chmod(0o755)

    def run():
        environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
        command = ["sh", str(SCRIPTS / "publish.sh"), str(tmp_path / "from"), str(tmp_path / "to")]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    return run


def version(base, number, facts):
    (base / str(number) / "assets.extra").mkdir(parents=True)
    (base / str(number) / "assets.extra" / "pause.json").write_text(facts)


def test_a_model_is_published_once(publish, tmp_path):
    version(tmp_path / "from", 9, "old")
    version(tmp_path / "from", 10, "new")
    command = f"-m serving.publish --from {tmp_path / 'from'} --to {tmp_path / 'to'}\n"
    assert publish() == command  # there is none
    version(tmp_path / "to", 1, "old")
    assert publish() == command  # there is another
    version(tmp_path / "to", 2, "new")
    (tmp_path / "to" / "3.withdrawn").mkdir()
    assert "published already" in publish()


def test_a_base_path_without_a_version_is_the_publisher_s_to_refuse(publish, tmp_path):
    (tmp_path / "from").mkdir()
    (tmp_path / "to").mkdir()
    assert publish().startswith("-m serving.publish")


# the proxy


def test_the_proxy_gives_away_neither_metrics_nor_the_caller_s_word(tmp_path):
    available(nginx)
    assert proxy(ROOT) == []
    shutil.copytree(SCRIPTS, tmp_path / "infra" / "compose", ignore=shutil.ignore_patterns("secrets"))
    path = tmp_path / "infra" / "compose" / "nginx.conf"
    kept = [line for line in path.read_text().splitlines() if "X-Forwarded-For" not in line and "/metrics" not in line]
    path.write_text("\n".join(kept))
    assert [line.partition(": ")[2] for line in proxy(tmp_path)] == [
        "a caller may say which address it has",
        "metrics are open to the world",
    ]
