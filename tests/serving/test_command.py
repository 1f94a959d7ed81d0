"""The commands of serving as people run them: a mistake is one line and exit code 2; what runs shows its figures."""

import re
import socket
import subprocess
import sys

import grpc
import httpx
import pytest
from certificates import write_certificates
from commands import answer
from prometheus_client.parser import text_string_to_metric_families

from serving.client import EmbeddingClient


def run(module: str, *arguments: object) -> tuple[int, str, str]:
    """Exit code, stdout, stderr of a process."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return ended.returncode, ended.stdout, ended.stderr


def refusal(module: str, *arguments: object) -> str:
    """The one line, without `error: `."""
    code, stdout, stderr = run(module, *arguments)
    assert (code, stdout) == (2, "") and re.fullmatch(r"error: [^\n]+\n", stderr), (code, stdout, stderr)
    return stderr.removeprefix("error: ").rstrip("\n")


# the processes below end before they load anything: a folder with a number is all they see of a model


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "pause" / "1").mkdir(parents=True)
    return tmp_path / "pause"


@pytest.mark.parametrize("arguments", [["--modle_name", "pause"], ["--port", "grpc"], []])
def test_bad_flags_are_told_with_where_to_look(arguments):
    said = refusal("serving.server", *arguments)
    assert (arguments or ["--model_base_path"])[0] in said


@pytest.mark.parametrize("flag", ["--port", "--rest_api_port"])
def test_a_port_in_use_is_named_with_its_flag(folder, flag):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        flags = {"--host": "127.0.0.1", "--port": 0, "--model_base_path": folder, flag: port}
        said = refusal("serving.server", *(part for pair in flags.items() for part in pair))
    assert said.startswith(f"{flag} {port} cannot be listened on") and said.endswith("Address already in use")


def test_reload_for_other_machines_without_their_certificates_is_refused(folder):
    said = refusal("serving.server", "--host", "0.0.0.0", "--model_base_path", folder, "--allow_reload_by_grpc")
    assert "--allow_reload_by_grpc" in said and "client_verify" in said


def test_a_host_that_is_not_this_machine_is_named(folder):
    # 192.0.2.0/24 is set apart for examples and is nobody's address.
    assert "192.0.2.1" in refusal("serving.server", "--host", "192.0.2.1", "--port", 0, "--model_base_path", folder)


@pytest.mark.parametrize("there", [True, False], ids=["empty", "missing"])
def test_a_base_path_without_versions_is_told_with_what_writes_them(tmp_path, there):
    if there:
        (tmp_path / "nothing").mkdir()
    said = refusal("serving.server", "--model_base_path", tmp_path / "nothing")
    assert str(tmp_path / "nothing") in said and "model.export" in said


@pytest.mark.parametrize("content", [None, b"-----BEGIN CERTIFICATE-----\nrubbish\n"], ids=["missing", "rubbish"])
def test_an_unreadable_certificate_is_named(folder, tmp_path, content):
    files = write_certificates(tmp_path / "certificates")
    files.server.unlink()
    if content is not None:
        files.server.write_bytes(content)
    config = tmp_path / "ssl.config"
    config.write_text(f'server_key: "{files.server_key}" server_cert: "{files.server}"')
    said = refusal("serving.server", "--model_base_path", folder, "--ssl_config_file", config)
    assert f"--ssl_config_file {config}: server_cert" in said


def test_publishing_what_is_not_there_is_told(tmp_path):
    said = refusal("serving.publish", "--from", tmp_path / "nothing", "--to", tmp_path / "base")
    assert f"--from {tmp_path / 'nothing'}" in said
    assert list(tmp_path.iterdir()) == []


def test_the_help_shows_an_example(capsys):
    from serving.server.__main__ import main

    code, stdout, stderr = answer(capsys, main, "--help")
    assert (code, stderr) == (0, "")
    assert re.search(r"example:\n +python -m serving\.server .*--model_base_path", stdout)


# the page that the running command shows


def figures(server) -> dict[tuple[str, ...], float]:
    """Every sample of the page: name and label values in the order of their names -> value. The parser adds `_total`
    to the name of a counter that is without it."""
    page = httpx.get(f"{server.rest}/monitoring/prometheus/metrics", trust_env=False)
    assert page.status_code == 200
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(page.text)
        for sample in family.samples
    }


def test_the_metrics_page_tells_requests_latency_fill_padding_and_version(server):
    before = figures(server)
    with EmbeddingClient([server.address]) as client:
        client.contract()
        _, (fingerprint,) = client.embed(["bank loans and savings"])
        _, names = client.embed([f"ale number {number}" for number in range(32)])
    assert set(names) == {fingerprint}
    with grpc.insecure_channel(server.address) as channel, pytest.raises(grpc.RpcError):
        channel.unary_unary("/tensorflow.serving.PredictionService/Predict")(b"rubbish", timeout=30)
    body = {"signature_name": "contract", "instances": [""]}
    assert httpx.post(f"{server.rest}/v1/models/pause:predict", json=body, trust_env=False).status_code == 200
    after = figures(server)

    def grown(name: str, *labels: str) -> float:
        return after.get((name, *labels), 0) - before.get((name, *labels), 0)

    # gRPC: the contract and two calls of embed; REST: the contract
    count, latency = ":tensorflow:serving:request_count_total", ":tensorflow:serving:request_latency"
    assert grown(count, "pause", "OK") == 4
    assert grown(count, "unknown", "INVALID_ARGUMENT") == 1
    assert grown(f"{latency}_count", "Predict", "GRPC", "pause", "OK") == 3
    assert grown(f"{latency}_count", "Predict", "REST", "pause", "OK") == 1
    assert grown(f"{latency}_sum", "Predict", "GRPC", "pause", "OK") > 0
    runs = grown("pause_batch_fill_count", "pause")
    assert 2 <= runs <= 33 and 0 < grown("pause_batch_fill_sum", "pause") <= runs
    assert grown("pause_batch_rows_sum", "pause") == 33
    assert 33 < grown("pause_real_tokens_total", "pause") < grown("pause_padded_tokens_total", "pause")
    assert after["pause_version", fingerprint, "pause", "AVAILABLE", "1"] == 1
