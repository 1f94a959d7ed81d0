"""compose.yaml and its scripts: clean as it stands, and a check names every planted mistake."""

import hashlib
import os
import re
import shutil
import socket
import ssl
import stat
import subprocess
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from index.elastic.backend import PORT
from infra.checks import compose
from infra.checks.containers.compose_file import VARIABLE, Compose, substituted
from search.keys import read

ROOT = Path(__file__).parents[2]
QUICK = {check.name: check for check in compose.CHECKS if not check.slow}
SCRIPTS = ROOT / "infra" / "compose"


@pytest.fixture
def copy(tmp_path):
    """What the checks look at, to be spoilt."""
    (tmp_path / "infra").mkdir()
    shutil.copy(ROOT / "infra" / "compose.yaml", tmp_path / "infra")
    for name in ("infra/compose", "infra/images", "infra/monitoring", "examples"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "secrets"))
    (tmp_path / "serving").mkdir()
    shutil.copy(ROOT / "serving" / "Dockerfile", tmp_path / "serving")
    return tmp_path


def change(path, before, after):
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))


def found(root, *names):
    return "\n".join(line for name in names or QUICK for line in QUICK[name].run(root))


def test_the_file_is_clean():
    assert {"elasticsearch", "serving", "publish", "encode", "encode-files", "pubsub", "search", "proxy"} <= set(
        Compose.read(ROOT).services
    )
    assert found(ROOT) == ""


@pytest.mark.parametrize(
    ("check", "before", "after", "told"),
    [
        ("compose schema", "    init: true  # it has", "    inti: true  # it has", "'inti'"),
        ("compose schema", "cap_drop: [ALL]", "cap_drop: ALL", "is not of type 'array'"),
        ("compose links", "publish: {condition", "publisher: {condition", "'publisher' is not among the services"),
        ("compose links", "networks: [front, outside]", "networks: [frontt, outside]", "'frontt' is not among"),
        ("compose links", "secrets: [grafana_password]", "secrets: [grafana]", "'grafana' is not among the secrets"),
        ("compose links", "models:/models:ro", "model:/models:ro", "'model' is not among the volumes"),
        ("compose links", "--serving=serving:8500", "--serving=serving:8501", "is not where gRPC is served"),
        ("compose links", "--serving=serving:8500", "--serving=serving:8505", "serving listens on [8500, 8501]"),
        (
            "compose links",
            "--serving=serving:8500",
            "--serving=tfserving:8500",
            "'tfserving' is not among the services",
        ),
        ("compose links", "https://elasticsearch:9200/c", "https://elasticsearch:9201/c", "listens on [9200]"),
        ("compose links", "1}:8443:8443", "1}:8443:443", "publishes port 443"),
        ("compose links", "networks: [serving, index]", "networks: [serving]", "no network leads from encode-files"),
        ("compose flags", "--dead_letters=/data", "--dead_leters=/data", "knows --dead_leters"),
        ("compose flags", "- --behind_tls_proxy", "- --behind_proxy", "unrecognized arguments: --behind_proxy"),
        (
            "compose flags",
            "entrypoint: [python, -m, pipelines.encode]",
            "entrypoint: [python, -m, pipelines.enc]",
            "is not a",
        ),
        (
            "compose flags",
            "PAUSE_ES_CA: /run/secrets/ca\n      PAUSE_SEC",
            "PAUSE_ES_CERT: /run/secrets/ca\n      PAUSE_SEC",
            "nothing in the code reads PAUSE_ES_CERT",
        ),
        (
            "compose flags",
            "secrets: [ca, search_password, keys,",
            "secrets: [ca, search_password,",
            "/run/secrets/keys is not",
        ),
        (
            "compose files",
            "./compose/nginx.conf:",
            "./compose/nginx.cfg:",
            "mounts ./compose/nginx.cfg, which is not there",
        ),
        ("compose files", "secrets/proxy.key}", "secrets/proxy.pem.key}", "does not make"),
        ("compose hardening", 'user: "65534:65534"', 'user: "0:0"', "pubsub: runs as 0:0"),
        ("compose hardening", 'user: "65534:65534"', "user: root", "pubsub: runs as root"),
        ("compose hardening", 'user: "65534:65534"', "stdin_open: false", "whoever its image says"),
        (
            "compose hardening",
            "GF_SECURITY_ADMIN_PASSWORD__FILE: /run/secrets/grafana_password",
            "GF_SECURITY_ADMIN_PASSWORD: hunter2",
            "is in clear",
        ),
        (
            "compose hardening",
            "PAUSE_ES_PASSWORD_FILE: /run/secrets/pipeline_password",
            "PAUSE_ES_PASSWORD: hunter2",
            "is in clear",
        ),
        (
            "compose hardening",
            "https://elasticsearch:9200/c",
            "https://elastic:hunter2@elasticsearch:9200/c",
            "has a secret in it",
        ),
        ("compose hardening", "read_only: true", "read_only: false", "must have a read-only root"),
        ("compose hardening", "cap_drop: [ALL]", "cap_drop: [NET_RAW]", "must drop all capabilities"),
        ("compose hardening", "nginx:1.28.0-alpine", "nginx:alpine", "not pinned"),
        (
            "compose hardening",
            "networks: [front, outside]",
            "networks: [front, index]",
            "proxy: must not be on the network index",
        ),
        ("compose hardening", "index: {internal: true}", "index: {}", "network index: must be internal"),
        ("compose hardening", "${PAUSE_PUBLISH:-127.0.0.1}:3000", "3000", "grafana: publishes 3000 on every address"),
        ("compose hardening", '{cpus: "1", memory: 512M, pids: 1024}', '{cpus: "1"}', "grafana: has no bound"),
    ],
)
def test_a_planted_mistake_is_told(copy, check, before, after, told):
    change(copy / "infra" / "compose.yaml", before, after)
    said = found(copy, check)
    assert told in said


@pytest.mark.parametrize(
    ("file", "before", "after", "told"),
    [
        ("compose/nginx.conf", "server search:8000", "server search:8080", "search listens on [8000]"),
        ("compose/nginx.conf", "listen 8443", "listen 443", "publishes port 8443"),
        (
            "monitoring/grafana/datasources/prometheus.yaml",
            "prometheus:9090",
            "prometeus:9090",
            "'prometeus' is not among",
        ),
    ],
)
def test_a_mistake_in_a_mounted_file_is_told(copy, file, before, after, told):
    change(copy / "infra" / file, before, after)
    assert told in found(copy, "compose links")


def test_elasticsearch_is_where_the_code_looks_for_it():
    assert compose.THIRD_PARTIES["elasticsearch"] == [PORT]


def test_variables_take_their_defaults():
    assert substituted("${A:-b}:${PAUSE_UID:?no}:$${C}") == "b:1000:${C}"


# secrets


def make(folder, *flags, **environment):
    command = ["bash", str(SCRIPTS / "secrets.sh"), *flags, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def secrets(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made") / "secrets"
    assert make(folder).returncode == 0
    return folder


def test_secrets_are_their_owner_s_alone_and_no_container_reads_them_as_root(secrets):
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in secrets.iterdir()} == {0o600}
    (user,) = (secrets / "env").read_text().splitlines()
    assert user == f"PAUSE_UID={(secrets / 'keys').stat().st_uid}" and user != "PAUSE_UID=0"


def test_a_second_run_changes_nothing_and_renew_changes_certificates_alone(secrets, tmp_path):
    shutil.copytree(secrets, tmp_path / "s")
    before = contents(tmp_path / "s")
    assert make(tmp_path / "s").returncode == 0 and contents(tmp_path / "s") == before
    assert make(tmp_path / "s", "--renew").returncode == 0
    after = contents(tmp_path / "s")
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {"ca.pem", "elasticsearch.pem", "elasticsearch.key", "proxy.pem", "proxy.key"}


def test_no_two_installations_share_a_secret(secrets, tmp_path):
    assert make(tmp_path / "other").returncode == 0
    ours, theirs = contents(secrets), contents(tmp_path / "other")
    assert [name for name in ours if ours[name] == theirs[name]] == ["env"]


def test_the_search_service_takes_the_first_key_and_holds_its_hash_alone(secrets):
    key = (secrets / "api_key").read_text()
    callers = read(secrets / "keys")
    assert callers.keys() == {hashlib.sha256(key.encode()).hexdigest()}
    assert key not in (secrets / "keys").read_text()


def test_what_is_killed_half_way_is_completed(secrets, tmp_path):
    shutil.copytree(secrets, tmp_path / "s")
    (tmp_path / "s" / "proxy.key").unlink()
    (tmp_path / "s" / "signing").write_text("")
    assert make(tmp_path / "s").returncode == 0
    assert contents(tmp_path / "s").keys() == contents(secrets).keys()
    assert len((tmp_path / "s" / "signing").read_text()) == 64


@pytest.mark.parametrize("name", ["elasticsearch", "proxy"])
def test_a_certificate_is_believed_by_its_name(secrets, name):
    server = HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(secrets / f"{name}.pem", secrets / f"{name}.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    Thread(target=server.handle_request, daemon=True).start()
    trust = ssl.create_default_context(cafile=secrets / "ca.pem")
    host = "elasticsearch" if name == "elasticsearch" else "localhost"
    with socket.create_connection(("127.0.0.1", server.server_port)) as plain:
        with trust.wrap_socket(plain, server_hostname=host) as secured:
            assert secured.version() == "TLSv1.3"
    server.server_close()


def test_a_wrong_flag_is_one_line():
    run = make("/nowhere", "--renw")
    assert run.returncode == 2 and run.stderr.startswith("error: ") and run.stderr.count("\n") == 1


@pytest.mark.parametrize("path", sorted(SCRIPTS.glob("*.sh")), ids=lambda path: path.name)
def test_every_script_is_shell(path):
    assert path.stat().st_mode & 0o111
    assert subprocess.run(["bash", "-n", str(path)], capture_output=True).returncode == 0


# README


def test_the_readme_has_every_service_and_every_variable():
    readme = (SCRIPTS / "README.md").read_text()
    text = (ROOT / "infra" / "compose.yaml").read_text()
    tabled = {
        name for row in re.findall(r"^\| (`.*?) \|", readme, re.MULTILINE) for name in re.findall(r"`([\w-]+)`", row)
    }
    variables = {match["name"] for match in VARIABLE.finditer(text) if match["name"]}
    assert tabled == {*Compose.read(ROOT).services, *variables}


def test_the_readme_has_the_defaults_of_the_variables():
    readme = (SCRIPTS / "README.md").read_text()
    text = (ROOT / "infra" / "compose.yaml").read_text()
    defaults = {match["rest"].removeprefix("../") for match in VARIABLE.finditer(text) if match["how"] == "-"}
    assert len(defaults) == 6
    assert [default for default in defaults if f"`{default}`" not in readme] == []
