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
        (["--index", "no-such-index", "--serving", "localhost:1", "--port", "0"], "no index at no-such-index"),
    ],
)
def test_a_mistake_is_one_line(capsys, tmp_path, monkeypatch, flags, said):
    monkeypatch.chdir(tmp_path)
    assert said in refusal(capsys, main, *flags)


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
