"""One secret an installation: made once, for its owner's eyes, the same for all who start together."""

import hashlib
import logging
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from answering import given
from commands import refusal
from starlette.testclient import TestClient

from common.errors import InputError
from search.__main__ import main
from search.access.secret import BYTES, Secret, installation_secret
from search.app import create_app
from search.feedback.store import Answer, open_feedback
from search.settings import Settings

MAKE = "import sys; from search.access.secret import installation_secret as s; print(s(sys.argv[1]).key('x').hex())"


def who(index, embedder, address: str) -> str:
    client = TestClient(create_app(index, embedder, Settings(rate=0)), "http://localhost", client=(address, 1))
    assert client.post("/v1/feedback", json=given(client)).status_code == 204
    *_, last = (record for record in open_feedback(index.url).scan() if isinstance(record, Answer))
    return last.who


def test_it_is_made_with_the_first_service_and_kept_for_its_owner_alone(serve, index, tmp_path):
    assert not (tmp_path / "index-secret").exists()
    body = given(serve())
    made = tmp_path / "index-secret"
    assert (len(made.read_bytes()), made.stat().st_mode & 0o777) == (BYTES, 0o600)
    assert serve().post("/v1/feedback", json=body).status_code == 204  # after a restart


def test_processes_that_start_together_have_one(tmp_path):
    command = [sys.executable, "-c", MAKE, str(tmp_path / "index")]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    said = {run.communicate(timeout=120)[0].strip() for run in runs}
    assert said == {installation_secret(f"lance://{tmp_path}/index").key("x").hex()}


def test_one_that_is_open_to_others_is_closed(tmp_path):
    (tmp_path / "index-secret").write_bytes(b"s" * BYTES)
    (tmp_path / "index-secret").chmod(0o644)
    assert installation_secret(str(tmp_path / "index")).key("x") == Secret(b"s" * BYTES).key("x")
    assert (tmp_path / "index-secret").stat().st_mode & 0o777 == 0o600


def test_one_cut_short_was_never_used_and_is_made_anew(tmp_path):
    (tmp_path / "index-secret").write_bytes(b"half")
    installation_secret(str(tmp_path / "index"))
    assert len((tmp_path / "index-secret").read_bytes()) == BYTES


def test_where_none_can_be_kept_the_service_has_one_of_its_own(tmp_path, caplog):
    installation_secret(str(tmp_path / "missing" / "index"))
    assert "cannot keep a secret" in caplog.text and "PAUSE_SECRET_FILE" in caplog.text


@pytest.mark.parametrize(("content", "told"), [(None, "cannot be read"), (b"short", "holds 5 bytes; give at least 32")])
def test_a_file_that_is_no_secret_is_told(tmp_path, content, told):
    if content:
        (tmp_path / "given").write_bytes(content)
    with pytest.raises(InputError, match=told):
        installation_secret(str(tmp_path / "index"), str(tmp_path / "given"))


def test_it_is_in_no_log_and_no_representation(serve, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    serve(secret_file=None).post("/v1/search", json={"text": "x"})
    value = (tmp_path / "index-secret").read_bytes()
    assert value.hex() not in caplog.text and repr(value) not in caplog.text
    assert repr(Secret(value)) == "Secret(...)"


# addresses


def test_an_address_is_not_found_by_trying_all(index, embedder):
    """The name of a caller was the hash of its address alone: four thousand million are tried within the hour."""
    kept = who(index, embedder, "203.0.113.7")
    assert kept.startswith("anonymous:")
    guesses = ("203.0.113.7", "pause caller 203.0.113.7")
    assert not any(kept.endswith(hashlib.sha256(one.encode()).hexdigest()[:12]) for one in guesses)
    assert who(index, embedder, "203.0.113.7") == kept
    (open_feedback(index.url).path.with_name("index-secret")).unlink()
    assert who(index, embedder, "203.0.113.7") != kept  # another installation


def test_who_has_a_network_is_one_caller(index, embedder):
    first = who(index, embedder, "2001:db8:1:2::1")
    assert who(index, embedder, "2001:db8:1:2:ffff:ffff:ffff:ffff") == first
    assert who(index, embedder, "2001:db8:1:3::1") != first
    assert who(index, embedder, "::ffff:203.0.113.7") == who(index, embedder, "203.0.113.7")
    assert who(index, embedder, "203.0.113.8") != who(index, embedder, "203.0.113.7")


# the command


def test_a_secret_that_cannot_be_used_is_one_line(capsys, index, encoder, monkeypatch):
    monkeypatch.setenv("PAUSE_SECRET_FILE", "no-such-secret")
    said = refusal(capsys, main, "--index", index.url, "--serving", encoder.address, "--port", "0")
    assert "PAUSE_SECRET_FILE names no-such-secret, which cannot be read" in said


def test_a_bound_of_nothing_is_one_line(capsys):
    assert "--feedback_bytes must be at least 1" in refusal(capsys, main, "--feedback_bytes", "0")


# a server that lets nobody write


class Closed(BaseHTTPRequestHandler):
    """As Elasticsearch answers who has no rights."""

    def do_GET(self):
        body = b'{"error": {"type": "security_exception", "reason": "not yours"}, "status": 403}'
        self.send_response(403)
        self.send_header("X-Elastic-Product", "Elasticsearch")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def test_a_service_without_rights_to_the_server_has_a_secret_of_its_own(caplog):
    with ThreadingHTTPServer(("127.0.0.1", 0), Closed) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/companies"
        first, second = installation_secret(url), installation_secret(url)
        server.shutdown()
    assert first.key("x") != second.key("x")
    assert f"{url}-secret cannot keep a secret (this user may not write there)" in caplog.text
