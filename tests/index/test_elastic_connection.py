"""How Elasticsearch is reached, held against a server of ten lines that answers as it is told."""

import base64
import json
import threading
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
from certificates import write_certificates
from companies import DIMENSION, MODEL, company, statuses
from waiting import wait_until

from index.base import Spec
from index.elastic.cluster import retry
from index.elastic.cluster.aliases import Aliases, PhysicalIndex
from index.elastic.mapping import mappings, to_source
from index.errors import IndexMissing, IndexUnavailable, IndexUnusable
from index.open import open_index

PHYSICAL = f"x-{MODEL}-1"
MAPPING = (200, {PHYSICAL: {"mappings": mappings(Spec(MODEL, DIMENSION), 1)}})
BUSY_ITEM = {"index": {"status": 429, "error": {"type": "es_rejected_execution_exception", "reason": "queue"}}}


class Script(ThreadingHTTPServer):
    """Answers requests with (status, body) in turn, the last one ever after; remembers what it was asked."""

    def __init__(self, *answers):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers, self.asked, self.headers = deque(answers), [], {}
        self.host = f"127.0.0.1:{self.server_port}"
        self.url = f"http://{self.host}/x"
        threading.Thread(target=self.serve_forever, args=[0.01], daemon=True).start()

    def reply(self, path):
        return self.answers[0] if len(self.answers) == 1 else self.answers.popleft()

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.asked.append((f"{self.command} {self.path.split('?')[0]}", self.headers, body))
        status, content = self.server.reply(self.path.split("?")[0])
        said = json.dumps(content).encode()
        self.send_response(status)
        for name, value in (
            ("X-Elastic-Product", "Elasticsearch"),
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(said))),
            ("Connection", "close"),
            *self.server.headers.items(),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(said)

    do_GET = do_POST = do_PUT = answer

    def log_message(self, *_):
        pass


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    monkeypatch.setattr(retry, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(retry, "LONGEST_PAUSE", 0.01)
    for name in ("API_KEY", "API_KEY_FILE", "USER", "PASSWORD", "PASSWORD_FILE", "CA", "ALLOW_PLAIN_HTTP"):
        monkeypatch.delenv(f"PAUSE_ES_{name}", raising=False)


@pytest.mark.parametrize(
    ("environment", "header"),
    [
        ({"PAUSE_ES_API_KEY": "a2V5"}, "ApiKey a2V5"),
        (
            {"PAUSE_ES_USER": "u", "PAUSE_ES_PASSWORD": "p"},
            f"Basic {base64.b64encode(b'u:p').decode()}",
        ),
        ({}, None),
    ],
)
def test_who_asks_is_in_the_header_of_every_request(monkeypatch, environment, header):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with Script(MAPPING) as server:
        assert open_index(server.url).spec() == Spec(MODEL, DIMENSION)
    assert {headers["Authorization"] for _, headers, _ in server.asked} == {header}


@pytest.mark.parametrize(
    ("name", "others", "header"),
    [
        ("PAUSE_ES_API_KEY", {}, "ApiKey a2V5"),
        ("PAUSE_ES_PASSWORD", {"PAUSE_ES_USER": "u"}, f"Basic {base64.b64encode(b'u:a2V5').decode()}"),
    ],
)
def test_a_secret_may_stand_in_a_file(tmp_path, monkeypatch, name, others, header):
    (tmp_path / "secret").write_text("a2V5\n")
    for variable, value in {**others, f"{name}_FILE": str(tmp_path / "secret")}.items():
        monkeypatch.setenv(variable, value)
    with Script(MAPPING) as server:
        open_index(server.url)
    assert {headers["Authorization"] for _, headers, _ in server.asked} == {header}


@pytest.mark.parametrize("name", ["PAUSE_ES_API_KEY", "PAUSE_ES_PASSWORD"])
@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "must hold the secret in one line"),
        (b" \n", "must hold the secret in one line"),
        (b"first\nsecond\n", "must hold the secret in one line"),
        (b"\xff\xfe", "cannot be read: not text in UTF-8"),
        (None, "cannot be read: No such file or directory"),
    ],
)
def test_a_file_without_a_secret_is_one_line_that_names_both(tmp_path, monkeypatch, name, content, told):
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content)
    monkeypatch.setenv(f"{name}_FILE", str(file))
    with pytest.raises(IndexUnusable, match=f"^{name}_FILE names '{file}', which {told}") as raised:
        open_index("http://127.0.0.1:1/x")
    assert "first" not in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize("name", ["PAUSE_ES_API_KEY", "PAUSE_ES_PASSWORD"])
def test_a_secret_and_a_file_of_it_are_not_both_taken(tmp_path, monkeypatch, name):
    (tmp_path / "secret").write_text("other")
    monkeypatch.setenv(name, "a2V5")
    monkeypatch.setenv(f"{name}_FILE", str(tmp_path / "secret"))
    with pytest.raises(IndexUnusable, match=f"^{name} and {name}_FILE are both set; keep one of them$"):
        open_index("http://127.0.0.1:1/x")


def test_a_redirect_takes_no_key_to_another_server(monkeypatch):
    monkeypatch.setenv("PAUSE_ES_API_KEY", "a2V5")
    with Script(MAPPING) as elsewhere, Script((302, {})) as server:
        server.headers = {"Location": f"{elsewhere.url}/_mapping"}
        with pytest.raises(IndexUnusable, match=r"points to another address \(302\)"):
            open_index(server.url)
    assert server.asked and elsewhere.asked == []


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_busy_server_is_asked_again(status):
    busy = (status, {"error": {"reason": "not now"}})
    with Script(busy, busy, MAPPING) as server:
        assert open_index(server.url).spec() == Spec(MODEL, DIMENSION)
    assert len(server.asked) == 5  # thrice the first, then two that open and ask


def test_a_server_that_stays_busy_is_given_up_with_its_reason(monkeypatch):
    monkeypatch.setattr("index.elastic.store.OPENING_SECONDS", 0.1)
    with Script((503, {"error": {"reason": "no master"}})) as server:
        with pytest.raises(IndexUnavailable, match="did not answer for 0 s: 503 no master"):
            open_index(server.url)
    assert len(server.asked) > 3


def test_nobody_at_the_address_is_one_line(monkeypatch):
    monkeypatch.setattr("index.elastic.store.OPENING_SECONDS", 0.1)
    with Script(MAPPING) as server:
        pass
    with pytest.raises(IndexUnavailable, match=f"{server.url} did not answer"):
        open_index(server.url)


def test_of_several_nodes_those_that_live_answer():
    with Script(MAPPING) as dead:
        pass
    with Script(MAPPING) as alive:
        index = open_index(f"http://{dead.host},{alive.host}/x")
        assert [index.spec() for _ in range(4)] == [Spec(MODEL, DIMENSION)] * 4


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_names_the_variables_and_is_not_repeated(status):
    with Script((status, {"error": {"reason": "missing credentials"}})) as server:
        with pytest.raises(IndexUnusable, match=f"{status}.*missing credentials; set PAUSE_ES_API_KEY"):
            open_index(server.url)
    assert len(server.asked) == 1


def test_a_server_without_tls_asked_for_it_is_refused_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv("PAUSE_ES_CA", str(write_certificates(tmp_path).authority))
    with Script(MAPPING) as server, pytest.raises(IndexUnusable, match="http:// is for a server without TLS"):
        open_index(f"https://{server.host}/x")


def test_a_file_that_is_no_certificate_is_refused(tmp_path, monkeypatch):
    (tmp_path / "ca.pem").write_text("nothing")
    monkeypatch.setenv("PAUSE_ES_CA", str(tmp_path / "ca.pem"))
    with pytest.raises(IndexUnusable, match="cannot be used as an index"):
        open_index("https://127.0.0.1:1/x")


def test_a_missing_alias_is_a_missing_index():
    with Script((404, {"error": {"type": "index_not_found_exception", "reason": "no such index"}})) as server:
        with pytest.raises(IndexMissing):
            open_index(server.url)


# many documents


def written(server):
    """The ids of each bulk request."""
    bodies = [body.splitlines() for path, _, body in server.asked if path.endswith("/_bulk")]
    return [[json.loads(line)["index"]["_id"] for line in lines[::2]] for lines in bodies]


def bulk(*items):
    return 200, {"items": list(items)}


DONE = {"index": {"status": 201}}


def test_documents_the_server_is_too_busy_for_are_sent_again_alone():
    # Before anything is sent again the alias is looked for.
    answers = bulk(DONE, BUSY_ITEM, DONE), MAPPING, bulk(BUSY_ITEM), MAPPING, bulk(DONE)
    with Script(MAPPING, MAPPING, MAPPING, *answers) as server:
        outcomes = open_index(server.url).write([company(id) for id in "abc"])
    assert statuses(outcomes) == ["indexed"] * 3
    assert written(server) == [["a", "b", "c"], ["b"], ["b"]]


def test_a_conflict_is_stale_and_a_mapping_error_names_its_field():
    conflict = {"index": {"status": 409, "error": {"reason": "version conflict"}}}
    error = {"reason": "failed to parse field [sector] of type [keyword]", "caused_by": {"reason": "too long"}}
    refused = {"index": {"status": 400, "error": error}}
    newer = {"_id": "a", "found": True, "_version": 2, "_source": to_source(company("a", 2), 1)}
    answers = bulk(conflict, refused), (200, {"docs": [newer]}), bulk(refused)
    with Script(MAPPING, MAPPING, MAPPING, *answers) as server:
        stale, failed = open_index(server.url).write([company("a"), company("b")])
    assert written(server) == [["a", "b"], ["b"]]  # once more with the vector in numbers
    assert (stale.status, failed.status) == ("stale", "failed")
    assert failed.reason == "sector: failed to parse field [sector] of type [keyword]: too long"


def test_what_was_written_by_a_try_whose_answer_was_lost_is_not_stale(monkeypatch):
    monkeypatch.setattr("index.elastic.store._now", lambda: 77)
    conflict = {"index": {"status": 409, "error": {"reason": "version conflict"}}}
    stored = [
        {"_id": id, "found": True, "_version": 1, "_source": to_source(company(id), written)}
        for id, written in (("a", 77), ("b", 76))
    ]
    lost = (504, {"error": {"reason": "gateway"}})
    answers = lost, MAPPING, bulk(conflict, conflict), (200, {"docs": stored})
    with Script(MAPPING, MAPPING, MAPPING, *answers) as server:
        outcomes = open_index(server.url).write([company("a"), company("b")])
    assert statuses(outcomes) == ["indexed", "stale"]


SICK_SHARD = {"type": "no_shard_available_action_exception", "reason": "the shard is being recovered"}


def test_a_company_whose_shard_is_away_is_asked_for_again_and_is_not_missing():
    stored = {"_id": "a", "found": True, "_version": 2, "_source": to_source(company("a", 2), 1)}
    away, there = ((200, {"docs": [one]}) for one in ({"_id": "a", "error": SICK_SHARD}, stored))
    with Script(MAPPING, MAPPING, MAPPING, away, there) as server:
        assert open_index(server.url).known(["a"])["a"].version == 2


def test_a_conflict_with_what_cannot_be_read_for_a_moment_does_not_take_it_for_deleted():
    reason = "[a]: version conflict, current version [2] is higher or equal to the one provided [1]"
    conflict = {"index": {"status": 409, "error": {"reason": reason}}}
    newer = {"_id": "a", "found": True, "_version": 2, "_source": to_source(company("a", 2), 1)}
    away, there = ((200, {"docs": [one]}) for one in ({"_id": "a", "error": SICK_SHARD}, newer))
    with Script(MAPPING, MAPPING, MAPPING, bulk(conflict), away, MAPPING, there, bulk(DONE)) as server:
        assert statuses(open_index(server.url).write([company("a")])) == ["stale"]
    assert written(server) == [["a"]]


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 502, 503])
def test_an_item_that_is_refused_through_no_fault_of_its_document_is_sent_again(status):
    sick = {"index": {"status": status, "error": {"type": "security_exception", "reason": "not now"}}}
    with Script(MAPPING, MAPPING, MAPPING, bulk(sick, DONE), MAPPING, bulk(DONE)) as server:
        assert statuses(open_index(server.url).write([company("a"), company("b")])) == ["indexed"] * 2
    assert written(server) == [["a", "b"], ["a"]]


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 503])
def test_items_that_stay_refused_raise_and_are_no_outcome(status, monkeypatch):
    monkeypatch.setattr(retry, "SECONDS", 0.1)
    sick = {"index": {"status": status, "error": {"type": "security_exception", "reason": "not now"}}}

    class Refusing(Script):
        def reply(self, path):
            return bulk(sick) if path.endswith("/_bulk") else MAPPING

    with Refusing(MAPPING) as server, pytest.raises(IndexUnavailable, match=f"{status} not now"):
        open_index(server.url).write([company("a")])


def test_a_server_error_of_the_whole_request_is_asked_again():
    with Script((500, {"error": {"reason": "null"}}), MAPPING) as server:
        assert open_index(server.url).spec() == Spec(MODEL, DIMENSION)


def test_what_is_too_large_together_is_sent_in_halves_and_alone_fails():
    large = (413, {"error": {"reason": "too large"}})
    with Script(MAPPING, MAPPING, MAPPING, large, large, bulk(DONE)) as server:
        outcomes = open_index(server.url).write([company("a"), company("b")])
    assert statuses(outcomes) == ["failed", "indexed"]
    assert written(server) == [["a", "b"], ["a"], ["b"]]


def test_large_documents_are_parted_before_they_are_sent(monkeypatch):
    monkeypatch.setattr("index.elastic.writing.bulk.BYTES", 3000)
    with Script(MAPPING, MAPPING, MAPPING, bulk(DONE)) as server:
        documents = [company(id, description="x" * 2000) for id in "abc"]
        assert statuses(open_index(server.url).write(documents)) == ["indexed"] * 3
    assert sorted(written(server)) == [["a"], ["b"], ["c"]]


def test_who_is_in_haste_gives_up_soon_and_looks_for_the_alias_once(monkeypatch):
    monkeypatch.setattr("index.elastic.store.READER_SECONDS", 60.0)
    with Script(MAPPING, MAPPING, (200, {"hits": {"hits": []}})) as server:
        index = open_index(server.url, retry_seconds=0.1)
        opened = len(server.asked)
        assert index.suggest("a") == index.suggest("b") == []
        assert len(server.asked) == opened + 2  # one question each
    with pytest.raises(IndexUnavailable, match="did not answer for 0 s"):
        index.suggest("c")


def test_who_reads_again_and_again_never_waits_for_the_look_but_follows_it(monkeypatch):
    aliases, looks, released = Aliases("http://nowhere/x", None, "x"), [], threading.Event()
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)
    monkeypatch.setattr("index.elastic.cluster.aliases.time", clock)

    def at(name):
        looks.append(name)
        assert len(looks) == 1 or released.wait(10)
        return PhysicalIndex(f"seen {len(looks)}", {})

    monkeypatch.setattr(aliases, "at", at)
    aliases.cache_seconds = 1.0
    assert aliases.cached().name == "seen 1"
    clock.now = 1.5
    assert [aliases.cached().name for _ in range(3)] == ["seen 1"] * 3  # while one look, the second, hangs
    released.set()
    wait_until(lambda: aliases.cached().name == "seen 2")
    clock.now = 6.6  # silent for more than five times as long as it remembers: it waits for the third
    assert aliases.cached().name == "seen 3"
