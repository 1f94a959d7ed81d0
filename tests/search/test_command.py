"""`python -m search` as people start it."""

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from commands import refusal
from companies import company

from search import keys
from search.__main__ import main

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--indx", "x"], "--indx"),
        (["--port", "many"], "--port"),
        (["--rate", "-1"], "--rate"),
        (["--burst", "0"], "--burst"),
        (["--keys", "no-such-file"], "no-such-file"),
        (["--hosts", "pause.example:80"], "--hosts"),
        (["--proxy", "*"], "--proxy"),
        (["--proxy", "proxy.example"], "--proxy"),
        (["--connections", "0"], "--connections"),
        (["--tls_key", "key.pem"], "go together"),
        (["--tls_certificate", "no.pem", "--tls_key", "no.pem"], "no.pem"),
        (["--index", "no-such-index", "--serving", "localhost:1", "--port", "0"], "no index at no-such-index"),
    ],
)
def test_a_mistake_is_one_line(capsys, tmp_path, monkeypatch, flags, said):
    monkeypatch.chdir(tmp_path)
    assert said in refusal(capsys, main, *flags)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "pause.example"])
def test_keys_do_not_cross_a_network_in_plain_http(capsys, tmp_path, host):
    keys.add(tmp_path / "keys", "ann", "read")
    said = refusal(capsys, main, "--keys", tmp_path / "keys", "--host", host, "--port", 0)
    assert all(flag in said for flag in ("--tls_certificate", "--tls_key", "--behind_tls_proxy"))


@pytest.mark.parametrize("flags", [["--host", "0.0.0.0", "--behind_tls_proxy"], ["--host", "127.0.0.2"]])
def test_keys_are_taken_behind_a_proxy_that_ends_tls_and_on_this_machine(capsys, tmp_path, flags):
    keys.add(tmp_path / "keys", "ann", "read")
    missing = ["--index", "no-such-index", "--serving", "localhost:1", "--port", 0]
    assert "no index at" in refusal(capsys, main, "--keys", tmp_path / "keys", *flags, *missing)


def test_a_key_file_that_others_may_write_to_is_refused_and_one_they_may_read_is_told(capsys, tmp_path, caplog):
    path, missing = tmp_path / "keys", ["--index", "no-such-index", "--serving", "localhost:1", "--port", 0]
    keys.add(path, "ann", "read")
    path.chmod(0o644)
    assert "no index at" in refusal(capsys, main, "--keys", path, *missing)
    assert f"chmod 600 {path}" in caplog.text
    path.chmod(0o620)
    assert f"chmod 600 {path}" in refusal(capsys, main, "--keys", path, *missing)


def test_an_address_that_cannot_be_one_is_one_line(capsys, index):
    assert "HOST:PORT" in refusal(capsys, main, "--index", index.url, "--serving", "http://x", "--port", "0")


def test_a_port_in_use_is_one_line(capsys, index, encoder):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refusal(capsys, main, "--index", index.url, "--serving", encoder.address, "--port", port)
    assert f"--port {port} cannot be listened on" in said


def test_it_starts_answers_and_ends(index, encoder):
    index.write([company("a%2Fb")])  # the client of the other tests would decode it twice
    command = [sys.executable, "-m", "search", "--index", index.url, "--serving", encoder.address, "--port", "0"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe, encoding="utf-8") as process:
        try:
            address = re.match(r"(http://127\.0\.0\.1:\d+) is the page", process.stdout.readline())[1]
            with urllib.request.urlopen(f"{address}/v1/companies/air-a/similar?why=true") as answer:
                assert len(json.load(answer)["hits"]) == 4
            with urllib.request.urlopen(f"{address}/v1/companies/a%252Fb/similar") as answer:
                assert json.load(answer)["anchor"]["id"] == "a%2Fb"
            with urllib.request.urlopen(f"{address}/readyz") as answer:
                assert json.load(answer)["ready"] is True
        finally:
            process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 0, said
    assert "Traceback" not in said
    assert "why=true" not in said


def test_importing_the_service_needs_neither_tensorflow_nor_beam():
    heavy = {"tensorflow", "keras", "apache_beam", "lancedb", "elasticsearch"}
    script = f"import sys, search.__main__; print('imported', *sorted({heavy!r} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["imported"]
