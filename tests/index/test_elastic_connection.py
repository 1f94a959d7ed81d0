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
from index.elastic import patience
from index.elastic.mapping import mappings
from index.elastic.places import Place, Places
from index.errors import IndexMissing, IndexUnusable
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

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.asked.append((f"{self.command} {self.path.split('?')[0]}", self.headers, body))
        status, content = self.server.answers[0] if len(self.server.answers) == 1 else self.server.answers.popleft()
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
    monkeypatch.setattr(patience, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(patience, "LONGEST_PAUSE", 0.01)
    for name in ("API_KEY", "USER", "PASSWORD", "CA", "ALLOW_PLAIN_HTTP"):
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
        with pytest.raises(IndexUnusable, match="did not answer for 0 s: 503 no master"):
            open_index(server.url)
    assert len(server.asked) > 3


def test_nobody_at_the_address_is_one_line(monkeypatch):
    monkeypatch.setattr("index.elastic.store.OPENING_SECONDS", 0.1)
    with Script(MAPPING) as server:
        pass
    with pytest.raises(IndexUnusable, match=f"{server.url} did not answer"):
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
    with Script(MAPPING) as server:
        with pytest.raises(IndexUnusable, match="http:// is for a server without TLS"):
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
    with Script(MAPPING, MAPPING, MAPPING, bulk(DONE, BUSY_ITEM, DONE), bulk(BUSY_ITEM), bulk(DONE)) as server:
        outcomes = open_index(server.url).write([company(id) for id in "abc"])
    assert statuses(outcomes) == ["indexed"] * 3
    assert written(server) == [["a", "b", "c"], ["b"], ["b"]]


def test_a_conflict_is_stale_and_a_mapping_error_names_its_field():
    conflict = {"index": {"status": 409, "error": {"reason": "version conflict"}}}
    error = {"reason": "failed to parse field [sector] of type [keyword]", "caused_by": {"reason": "too long"}}
    refused = {"index": {"status": 400, "error": error}}
    with Script(MAPPING, MAPPING, MAPPING, bulk(conflict, refused), bulk(refused)) as server:
        stale, failed = open_index(server.url).write([company("a"), company("b")])
    assert written(server) == [["a", "b"], ["b"]]  # once more with the vector in numbers
    assert (stale.status, failed.status) == ("stale", "failed")
    assert failed.reason == "sector: failed to parse field [sector] of type [keyword]: too long"


def test_what_was_written_by_a_try_whose_answer_was_lost_is_not_stale(monkeypatch):
    monkeypatch.setattr("index.elastic.store._now", lambda: 77)
    conflict = {"index": {"status": 409, "error": {"reason": "version conflict"}}}
    stored = [
        {"_id": "a", "found": True, "_source": {"version": 1, "indexed_at": 77}},
        {"_id": "b", "found": True, "_source": {"version": 1, "indexed_at": 76}},
    ]
    lost = (504, {"error": {"reason": "gateway"}})
    with Script(MAPPING, MAPPING, MAPPING, lost, bulk(conflict, conflict), (200, {"docs": stored})) as server:
        outcomes = open_index(server.url).write([company("a"), company("b")])
    assert statuses(outcomes) == ["indexed", "stale"]


def test_what_is_too_large_together_is_sent_in_halves_and_alone_fails():
    large = (413, {"error": {"reason": "too large"}})
    with Script(MAPPING, MAPPING, MAPPING, large, large, bulk(DONE)) as server:
        outcomes = open_index(server.url).write([company("a"), company("b")])
    assert statuses(outcomes) == ["failed", "indexed"]
    assert written(server) == [["a", "b"], ["a"], ["b"]]


def test_large_documents_are_parted_before_they_are_sent(monkeypatch):
    monkeypatch.setattr("index.elastic.bulk.BYTES", 3000)
    with Script(MAPPING, MAPPING, MAPPING, bulk(DONE)) as server:
        documents = [company(id, description="x" * 2000) for id in "abc"]
        assert statuses(open_index(server.url).write(documents)) == ["indexed"] * 3
    assert sorted(written(server)) == [["a"], ["b"], ["c"]]


def test_who_is_in_haste_gives_up_soon_and_looks_for_the_alias_once(monkeypatch):
    monkeypatch.setattr("index.elastic.store.READER_SECONDS", 60.0)
    with Script(MAPPING, MAPPING, (200, {"hits": {"hits": []}})) as server:
        index = open_index(server.url, patience=0.1)
        opened = len(server.asked)
        assert index.suggest("a") == index.suggest("b") == []
        assert len(server.asked) == opened + 2  # one question each
    with pytest.raises(IndexUnusable, match="did not answer for 0 s"):
        index.suggest("c")


def test_who_reads_again_and_again_never_waits_for_the_look_but_follows_it(monkeypatch):
    places, looks, released = Places("http://nowhere/x", None, "x"), [], threading.Event()
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)
    monkeypatch.setattr("index.elastic.places.time", clock)

    def at(name):
        looks.append(name)
        assert len(looks) == 1 or released.wait(10)
        return Place(f"seen {len(looks)}", {})

    monkeypatch.setattr(places, "at", at)
    places.memory = 1.0
    assert places.remembered().name == "seen 1"
    clock.now = 1.5
    assert [places.remembered().name for _ in range(3)] == ["seen 1"] * 3  # while one look, the second, hangs
    released.set()
    wait_until(lambda: places.remembered().name == "seen 2")
    clock.now = 6.6  # silent for more than five times as long as it remembers: it waits for the third
    assert places.remembered().name == "seen 3"
