"""Keys and scopes, rates, sizes, headers, and logs that keep people's questions to themselves."""

import logging

import pytest
from answering import given
from commands import answer, refusal
from starlette.testclient import TestClient

from common.errors import InputError
from search import keys
from search.access.limits import TokenBuckets
from search.feedback.store import Answer, open_feedback
from search.problems import of_error


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@pytest.fixture
def key_file(tmp_path):
    return tmp_path / "keys"


# keys


def test_without_a_key_nothing_is_answered_but_page_and_health(serve, key_file):
    keys.add(key_file, "ann", "read,feedback")
    client = serve(keys=str(key_file))
    for path in (
        "/v1/companies/air-a",
        "/v1/companies/air-a/similar",
        "/v1/suggest?prefix=a",
        "/v1/facets",
        "/v1/status",
    ):
        answered = client.get(path)
        assert (answered.status_code, answered.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert answered.json()["error"]["code"] == "no_key"
    for path in ("/healthz", "/readyz", "/openapi.json", "/docs", "/metrics"):
        assert client.get(path).status_code == 200


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Bearer wrong", "Basic YTpi", "bearer\twrong"])
def test_a_key_that_is_not_known_opens_nothing(serve, key_file, header):
    keys.add(key_file, "ann", "read")
    client = serve(keys=str(key_file))
    assert client.get("/v1/companies/air-a", headers={"Authorization": header}).status_code == 401


def test_a_key_opens_what_its_scopes_say(serve, key_file, index):
    reader, teacher = keys.add(key_file, "ann", "read"), keys.add(key_file, "bob", "feedback")
    client = serve(keys=str(key_file))
    assert client.get("/v1/companies/air-a", headers=bearer(reader)).status_code == 200
    answered = given(client, bearer(reader))
    assert client.post("/v1/feedback", json=answered, headers=bearer(reader)).status_code == 403
    assert client.get("/v1/companies/air-a", headers=bearer(teacher)).status_code == 403
    assert client.post("/v1/feedback", json=answered, headers=bearer(teacher)).status_code == 204
    (kept,) = (record for record in open_feedback(index.url).scan() if isinstance(record, Answer))
    assert kept.who == "bob"


def test_the_file_holds_hashes_for_its_owner_alone(key_file):
    key = keys.add(key_file, "ann", "read")
    assert key not in key_file.read_text()
    assert keys.digest(key) in key_file.read_text()
    assert key_file.stat().st_mode & 0o077 == 0
    assert len(key) >= 43  # 256 bits in base64


def test_a_key_removed_is_withdrawn_from_a_running_service(serve, key_file):
    key, other = keys.add(key_file, "ann", "read"), keys.add(key_file, "anna", "read")
    client = serve(keys=str(key_file))
    assert client.get("/v1/companies/air-a", headers=bearer(key)).status_code == 200
    keys.remove(key_file, "ann")
    assert client.get("/v1/companies/air-a", headers=bearer(key)).status_code == 401
    assert client.get("/v1/companies/air-a", headers=bearer(other)).status_code == 200


def test_the_command_makes_and_removes_keys(capsys, key_file):
    code, key, _ = answer(capsys, keys.main, "add", "--file", key_file, "--name", "ann")
    assert code == 0
    assert keys.read(key_file)[keys.digest(key.strip())] == keys.Caller("ann", frozenset({"read", "feedback"}))
    assert "already" in refusal(capsys, keys.main, "add", "--file", key_file, "--name", "ann")
    assert "scopes" in refusal(capsys, keys.main, "add", "--file", key_file, "--name", "bob", "--scopes", "all")
    assert "no key named" in refusal(capsys, keys.main, "remove", "--file", key_file, "--name", "bob")
    assert answer(capsys, keys.main, "remove", "--file", key_file, "--name", "ann")[0] == 0
    assert keys.read(key_file) == {}


# rates and sizes


def test_a_bucket_empties_and_fills_with_time():
    now = [0.0]
    buckets = TokenBuckets(rate=2, burst=3, clock=lambda: now[0])
    assert [buckets.take("a") for _ in range(4)] == [0, 0, 0, 1]
    assert buckets.take("b") == 0  # has its own
    now[0] = 0.5  # one more at 2 a second
    assert [buckets.take("a"), buckets.take("a")] == [0, 1]
    now[0] = 100.0  # never more than a burst
    assert [buckets.take("a") for _ in range(4)] == [0, 0, 0, 1]


def test_the_wait_is_as_long_as_it_takes():
    buckets = TokenBuckets(rate=0.1, burst=1, clock=lambda: 0.0)
    assert [buckets.take("a"), buckets.take("a")] == [0, 10]


def test_a_rate_of_nothing_is_no_limit():
    assert not any(TokenBuckets(rate=0, burst=1).take("a") for _ in range(100))


def test_who_asks_too_much_is_told_how_long_to_wait(serve):
    client = serve(rate=0.001, burst=2)
    assert [client.get("/v1/facets").status_code for _ in range(3)] == [200, 200, 429]
    refused = client.get("/v1/facets")
    assert refused.headers["Retry-After"].isdecimal()
    assert refused.json()["error"]["code"] == "too_many_requests"
    assert client.get("/healthz").status_code == 200  # balancers are not counted


def test_every_key_has_a_rate_of_its_own_and_wrong_ones_share_that_of_the_address(serve, key_file):
    first, second = keys.add(key_file, "ann", "read"), keys.add(key_file, "bob", "read")
    client = serve(keys=str(key_file), rate=0.001, burst=1)
    asked = [client.get("/v1/facets", headers=bearer(key)).status_code for key in (first, first, second, "x", "y")]
    assert asked == [200, 429, 200, 401, 429]


def asked_from(serve, *addresses, **settings):
    """The statuses that callers at these addresses get, one after the other."""
    app = serve(rate=0.001, burst=1, **settings).app
    return [TestClient(app, "http://localhost", client=(one, 1)).get("/v1/facets").status_code for one in addresses]


def test_who_has_a_network_of_ipv6_is_one_caller(serve):
    assert asked_from(serve, "2001:db8::1", "2001:db8::ffff:2", "2001:db8:0:0:9::1", "2001:db8:0:1::1") == [
        200, 429, 429, 200
    ]  # fmt: skip


def test_ipv4_in_the_dress_of_ipv6_is_ipv4(serve):
    assert asked_from(serve, "192.0.2.1", "::ffff:192.0.2.1", "::ffff:192.0.2.2") == [200, 429, 200]


def test_what_is_no_address_is_counted_all_the_same(serve):
    assert asked_from(serve, "testclient", "testclient", "fe80::1%eth0", "fe80::2%eth0") == [200, 429, 200, 429]


def test_a_key_that_is_named_like_an_address_does_not_share_its_rate(serve, key_file):
    key = keys.add(key_file, "192.0.2.1", "read")
    app = serve(keys=str(key_file), rate=0.001, burst=1).app
    client = TestClient(app, "http://localhost", client=("192.0.2.1", 1))
    assert client.get("/v1/facets").status_code == 401
    assert client.get("/v1/facets", headers=bearer(key)).status_code == 200


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_too_large_is_refused(serve, chunked):
    client = serve(body_bytes=100)
    body = b'{"text": "' + b"x" * 100 + b'"}'
    content = iter([body[:50], body[50:]]) if chunked else body
    answered = client.post("/v1/search", content=content, headers={"Content-Type": "application/json"})
    assert (answered.status_code, answered.json()["error"]["code"]) == (413, "too_large")
    assert client.post("/v1/search", json={"text": "x"}).status_code == 200


# headers and logs


@pytest.mark.parametrize("path", ["/", "/docs", "/v1/facets", "/v1/companies/nobody", "/nothing", "/healthz"])
def test_every_answer_tells_the_browser_to_load_nothing_foreign(client, path):
    headers = client.get(path).headers
    policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == policy["script-src"] == policy["style-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["object-src"] == "'none'"
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"


def test_answers_are_not_kept_by_caches(client):
    assert client.get("/v1/facets").headers["Cache-Control"] == "no-store"


def test_logs_do_not_tell_what_people_look_for(client, caplog, embedder):
    caplog.set_level(logging.DEBUG, "search")
    client.post("/v1/search", json={"text": "secretplan", "why": True})
    client.get("/v1/suggest", params={"prefix": "secretplan"})
    client.get("/v1/companies/secretplan")
    embedder.target = None
    client.post("/v1/search", json={"text": "secretplan elsewhere"})
    assert "POST /v1/search 200" in caplog.text
    assert "POST /v1/search 503" in caplog.text
    assert "secretplan" not in caplog.text


def test_a_fault_of_the_service_is_logged_without_the_question(client, caplog, index, monkeypatch):
    def broken(text, *_, **__):
        raise RuntimeError(f"while looking for {text}")

    monkeypatch.setattr(index, "search", broken)
    answered = client.post("/v1/search", json={"text": "secretplan", "mode": "words"})
    assert (answered.status_code, answered.json()["error"]["code"]) == (503, "index_down")
    assert "RuntimeError" in caplog.text
    assert "secretplan" not in caplog.text + answered.text


def test_whoever_runs_it_may_choose_to_log_questions(serve, caplog):
    caplog.set_level(logging.INFO, "search")
    serve(log_queries=True).post("/v1/search", json={"text": "openplan"})
    assert "openplan" in caplog.text


def test_a_message_never_breaks_over_half_a_character():
    assert of_error(InputError("\ud800 is odd")).status_code == 422
