"""The soak's checker and oracle on small histories made by hand: each kind of bug is found, a clean history passes."""

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from contextlib import closing
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from waiting import wait_until

from benchmarks.soak.check.accounting import accounted, check_letters
from benchmarks.soak.check.checker import BEHIND_SECONDS, OVERDUE_SECONDS, check_index, check_replies, check_seen
from benchmarks.soak.check.findings import DUPLICATED, LOST, MIXED, REVIVED, UNACCOUNTED, Letter, Reply, Run, Shown
from benchmarks.soak.check.history import FILE, MESSAGE, History, Purge, Record
from benchmarks.soak.faults import Fault
from benchmarks.soak.parts import planted
from benchmarks.soak.parts.part import resident_bytes
from benchmarks.soak.parts.proxy import HttpProxy, TcpProxy
from benchmarks.soak.report import Soak, draw, figures, memory_of, unexcused
from benchmarks.soak.senders import Files, Messages, line
from benchmarks.soak.traffic import BAD, Draft, Traffic
from index.base import Outcome
from index.document import Document, text_hash
from model.contract import Contract
from pipelines.records import BadRecord, decode
from pipelines.transforms.parse import parse

A, B = "a" * 16, "b" * 16
CONTRACTS = {
    A: Contract(A, 4, 32, "{industry}. {description}"),
    B: Contract(B, 8, 32, "{name}. {description}"),
}
WIDTH = {A: 4, B: 8}


def vectors(model, texts):
    """Of each text and model another one, of unit length."""
    made = np.stack(
        [np.random.default_rng([len(model), *f"{model}{text}".encode()]).normal(size=WIDTH[model]) for text in texts]
    )
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def company(id="x", version=10, description="brews beer", **fields):
    return Document(id, version, name=f"The {id}", industry="Brewing", description=description, **fields)


def kept(document, model=A):
    """As the index holds it."""
    if document.deleted:
        return document
    text = CONTRACTS[model].recipe.render(vars(document))
    return replace(document, model=model, text_hash=text_hash(text), embedding=vectors(model, [text])[0])


def history(*documents, way=FILE):
    """One record each, sent a second apart from 100 on."""
    made = History()
    for number, document in enumerate(documents):
        made.add(Record(way, "made", 100.0 + number, f"in.jsonl, byte {number}", document.id, document))
    return made


def kinds(findings):
    return [finding.kind for finding in findings]


def index_kinds(sent, *documents, live=A):
    return kinds(check_index(sent, documents, live, CONTRACTS, vectors))


# the oracle


def test_the_newest_version_wins_whatever_the_order_of_sending():
    for documents in ([company(version=1), company(version=2)], [company(version=2), company(version=1)]):
        assert history(*documents).winner("x").document.version == 2


def test_of_one_version_the_deletion_wins_and_of_two_companies_the_greater_hash():
    one, other = company(description="one"), company(description="other")
    greater = max(one, other, key=lambda document: document.fields_hash)
    assert history(one, other).winner("x").document == history(other, one).winner("x").document == greater
    assert history(Document.tombstone("x", 10), greater).winner("x").document.deleted


def test_an_untimed_message_is_as_old_as_its_publishing():
    sent = history(company(version=5), company(version=7, description="later"))
    sent.date(0, 9)
    assert sent.winner("x").number == 0 and sent.winner("x").document.version == 9


# the index, document by document


def test_a_clean_index_passes():
    gone = Document.tombstone("y", 30)
    sent = history(company(version=1), company(version=2), company("y", 20), gone)
    assert index_kinds(sent, kept(company(version=2)), gone) == []
    assert accounted(sent) == {"superseded": 2, "in the index": 2}


def test_a_company_that_is_missing_is_lost():
    assert index_kinds(history(company(), company("y")), kept(company())) == [LOST]


def test_an_update_that_never_came_is_lost():
    sent = history(company(version=1), company(version=2, description="brews ale"))
    assert index_kinds(sent, kept(company(version=1))) == [LOST]


def test_of_two_contents_of_one_version_the_wrong_one_is_a_lost_record():
    one, other = sorted((company(description="one"), company(description="other")), key=lambda one: one.fields_hash)
    assert index_kinds(history(one, other), kept(other)) == []
    assert index_kinds(history(one, other), kept(one)) == [LOST]


def test_a_company_deleted_by_nobody_is_lost():
    assert index_kinds(history(company(version=1)), Document.tombstone("x", 2)) == [LOST]


@pytest.mark.parametrize("version", [10, 31])  # as it was, or made newer than its deletion
def test_a_deleted_company_that_is_there_is_revived(version):
    sent = history(company(version=10), Document.tombstone("x", 30))
    assert index_kinds(sent, kept(company(version=version))) == [REVIVED]


def test_a_tombstone_may_be_missing_only_where_a_purge_may_have_taken_it():
    sent = history(company(version=10), Document.tombstone("x", 30))  # sent at 101
    assert index_kinds(sent) == [LOST]
    sent.purges.append(Purge(began=150, before=100))
    assert index_kinds(sent) == [LOST]
    sent.purges.append(Purge(began=200, before=150))
    assert index_kinds(sent) == []


def test_a_document_of_another_model_is_mixed():
    assert index_kinds(history(company()), kept(company(), B), live=A) == [MIXED]


def test_a_text_of_another_recipe_under_the_live_fingerprint_is_mixed():
    wrong = replace(kept(company(), A), text_hash=kept(company(), B).text_hash)
    (found,) = check_index(history(company()), [wrong], A, CONTRACTS, vectors)
    assert found.kind == MIXED and f"the recipe of {B}" in found.evidence


@pytest.mark.parametrize("vector", [np.array([1, 0, 0, 0], np.float32), np.ones(8, np.float32)])
def test_a_vector_of_another_text_or_width_is_mixed(vector):
    assert index_kinds(history(company()), replace(kept(company()), embedding=vector)) == [MIXED]


def test_an_id_that_is_there_twice_is_duplicated():
    assert index_kinds(history(company()), kept(company()), kept(company())) == [DUPLICATED]


def test_a_company_under_a_second_id_is_duplicated():
    copy = kept(replace(company(), id="x-copy"))
    assert index_kinds(history(company()), kept(company()), copy) == [DUPLICATED]


def test_what_nobody_sent_is_unaccounted_for():
    assert index_kinds(history(company()), kept(company()), kept(company("z", description="else"))) == [UNACCOUNTED]
    assert index_kinds(history(company(version=1)), kept(company(version=2))) == [UNACCOUNTED]


def test_a_record_that_was_the_newest_for_long_and_never_seen_is_lost_even_where_it_was_replaced():
    sent = history(company(version=1))  # sent at 100
    sent.add(Record(FILE, "update", 100 + OVERDUE_SECONDS / 2, "in.jsonl, byte 1", "x", company(version=2)))
    assert check_seen(sent) == []  # replaced too soon to tell
    sent.add(Record(FILE, "update", 110 + 2 * OVERDUE_SECONDS, "in.jsonl, byte 2", "x", company(version=3)))
    assert kinds(check_seen(sent)) == [LOST]
    sent.settle(1, 150.0)
    assert check_seen(sent) == []


# answers given meanwhile


def shown(document, score=0.0):
    return Shown(document.id, document.version, document.description, score)


def reply(*documents, model=A, at=200.0, text="beer", scores=None):
    """As a sound service gives it."""
    contract = CONTRACTS[model]
    question = vectors(model, [contract.recipe.render({"description": text})])[0]
    hits = []
    for document in documents:
        vector = vectors(scores or model, [CONTRACTS[scores or model].recipe.render(vars(document))])[0]
        hits.append(shown(document, float(question @ vector[: len(question)])))
    return Reply(at, at + 0.1, text=text, model=model, hits=tuple(hits))


def reply_kinds(sent, *replies):
    return kinds(check_replies(sent, replies, CONTRACTS, vectors))


def test_a_list_of_what_was_there_passes():
    sent = history(company(), company("y"))
    assert reply_kinds(sent, reply(company(), company("y")), reply(company(), model=B)) == []


def test_a_list_scored_by_two_models_is_mixed():
    sent = history(company(), company("y"))
    good, wrong = reply(company()), reply(company("y"), scores=B)
    assert reply_kinds(sent, replace(good, hits=(*good.hits, *wrong.hits))) == [MIXED]


def test_a_company_shown_long_after_its_deletion_was_seen_is_revived():
    sent = history(company(version=10), Document.tombstone("x", 30))
    sent.settle(1, 120.0)
    assert reply_kinds(sent, reply(company(version=10), at=120.0 + BEHIND_SECONDS - 1)) == []
    late = reply(company(version=10), at=120.0 + BEHIND_SECONDS + 1)
    assert reply_kinds(sent, late, late) == [REVIVED]  # once, however often it was shown


def test_a_company_shown_again_under_a_version_newer_than_its_deletion_is_revived():
    sent = history(company(version=10), Document.tombstone("x", 30))
    assert reply_kinds(sent, reply(company(version=31))) == [REVIVED]


def test_a_company_that_is_there_anew_may_be_shown():
    anew = company(version=40, description="brews again")
    sent = history(company(version=10), Document.tombstone("x", 30), anew)
    sent.settle(1, 120.0)
    assert reply_kinds(sent, reply(anew)) == []


def test_a_company_shown_as_it_was_before_an_update_that_was_seen_is_lost():
    sent = history(company(version=10), company(version=20, description="brews ale"))
    sent.settle(1, 120.0)
    assert reply_kinds(sent, reply(company(version=10))) == [LOST]


def test_a_company_asked_for_and_not_found_is_lost_unless_it_was_deleted():
    missing = Reply(200.0, 200.1, like="x", missing=True)
    sent = history(company(version=10))
    assert reply_kinds(sent, missing) == []  # not seen yet
    sent.settle(0, 120.0)
    assert reply_kinds(sent, missing) == [LOST]
    sent.add(Record(FILE, "delete", 150.0, "in.jsonl, byte 9", "x", Document.tombstone("x", 20)))
    assert reply_kinds(sent, missing) == []


def test_a_company_twice_in_a_list_is_duplicated_and_one_that_nobody_sent_unaccounted_for():
    assert reply_kinds(history(company()), reply(company(), company())) == [DUPLICATED]
    assert reply_kinds(history(company()), reply(company(version=11))) == [UNACCOUNTED]


# dead letters

RUNS = [Run(FILE, 0, 150), Run(FILE, 160, 300), Run(MESSAGE, 0, 300)]


def bad(source="in.jsonl, byte 7", way=FILE):
    made = history(company())
    made.add(Record(way, "bad", 110.0, source, reason="tags"))
    return made


def test_a_bad_record_with_its_letter_passes_and_each_process_may_write_one():
    letters = [Letter("/folder/in.jsonl, byte 7", "tags: [1] is not a list of texts", at) for at in (120.0, 170.0)]
    assert check_letters(bad(), letters, RUNS) == []
    named = [Letter("projects/p/subscriptions/s, message 12, as of 2026-11-18T04:53:07.7Z", "tags: 1 is not", 120.0)]
    assert check_letters(bad("message 12", MESSAGE), named, RUNS) == []


def test_a_bad_record_without_a_letter_or_with_another_reason_is_unaccounted_for():
    assert kinds(check_letters(bad(), [], RUNS)) == [UNACCOUNTED]
    wrong = [Letter("in.jsonl, byte 7", "index: the server is busy", 120.0)]
    assert kinds(check_letters(bad(), wrong, RUNS)) == [UNACCOUNTED]


def test_two_letters_of_one_process_are_duplicated():
    letters = [Letter("in.jsonl, byte 7", "tags: x", at) for at in (120.0, 121.0)]
    assert kinds(check_letters(bad(), letters, RUNS)) == [DUPLICATED]


def test_a_good_record_that_became_a_letter_is_unaccounted_for():
    letters = [Letter("in.jsonl, byte 7", "tags: x", 120.0), Letter("in.jsonl, byte 0", "index: 403", 120.0)]
    (found,) = check_letters(bad(), letters, RUNS)
    assert found.kind == UNACCOUNTED and "403" in found.evidence


def test_a_file_that_was_there_by_half_may_have_letters():
    sent = bad()
    sent.half_files.add("half.jsonl.gz")
    letters = [Letter("in.jsonl, byte 7", "tags: x", 120.0), Letter("/folder/half.jsonl.gz", "cut off", 120.0)]
    assert check_letters(sent, letters, RUNS) == []


# traffic


def test_what_is_drawn_says_to_the_pipeline_what_the_history_says_of_it():
    made = History()
    traffic = Traffic("m", made, seed=1, ids=[])
    sent = []

    def publish(data):
        sent.append(data)
        return str(len(sent))

    messages = Messages(publish, made)
    for _ in range(600):
        messages.send(traffic.draw())
    assert {record.kind for record in made.records} >= {"new", "delete", "duplicate", "late", "untimed", "equal", "bad"}
    for record, data in zip(made.records, sent, strict=True):
        if record.document is None:
            with pytest.raises(BadRecord, match=record.reason):
                parse(decode(data), 0, now=time.time_ns() // 1000)
        else:
            assert parse(decode(data), record.document.version, now=2**52) == record.document


def test_nothing_older_than_a_deletion_is_sent_once_it_may_be_purged():
    made = History()
    traffic = Traffic("m", made, seed=2, ids=[], late_seconds=0.0)
    messages = Messages(lambda data: "1", made)
    for _ in range(600):
        draft = traffic.draw()
        before = made.winner(draft.id)
        if draft.document and before and before.document.deleted:
            assert draft.document.order >= before.order and not draft.untimed
        messages.send(draft)


def test_the_same_seed_draws_the_same():
    def drawn():
        traffic = Traffic("m", History(), seed=3, ids=[])
        return [(draft.kind, draft.id) for draft in (traffic.draw() for _ in range(50))]

    assert drawn() == drawn()


def test_a_file_appears_whole_and_its_time_is_the_version_of_what_has_none(tmp_path):
    made = History()
    files = Files(tmp_path / "in", made)
    untimed = Draft("untimed", "x", company(version=1), untimed=True)
    files.drop("a.jsonl", [untimed, Draft("bad", raw=BAD[0][1](1), reason="record")])
    path = tmp_path / "in" / "a.jsonl"
    first, _ = path.read_bytes().splitlines()
    assert json.loads(first) == json.loads(line(untimed)) and "updated_at" not in json.loads(first)
    assert made.records[0].document.version == os.stat(path).st_mtime * 1e6
    assert made.records[1].source == f"a.jsonl, byte {len(first) + 1}" and made.records[1].document is None


# the report


def soak(**seen):
    given = dict(faults=[], replies=[], lags=[], memory=[], findings=[])
    return Soak(0.0, 400.0, history(company()), **{**given, **seen})


def test_memory_of_the_last_quarter_is_held_against_the_second():
    samples = [(at, "search", 100.0, size) for at, size in ((50, 1), (150, 100e6), (250, 7), (350, 104e6))]
    assert memory_of(soak(memory=samples)) == {"search": (100.0, 104.0, pytest.approx(0.04))}
    assert figures(soak(memory=samples))["met"] == "yes"
    grown = [*samples[:3], (350, "search", 100.0, 106e6)]
    assert figures(soak(memory=grown))["met"] == "no"


def test_a_failed_search_needs_a_fault_that_excuses_it():
    failed = Reply(100.0, 101.0, text="x", failure="503")
    kill = Fault("kill search", 99.0, 104.0, excuses=True)
    assert unexcused(soak(replies=[failed], faults=[kill])) == []
    assert unexcused(soak(replies=[failed], faults=[replace(kill, excuses=False)])) == [failed]
    assert figures(soak(replies=[failed]))["met"] == "no"
    of_model = replace(failed, failure='503: {"error": {"code": "wrong_model"}}')
    assert unexcused(soak(replies=[of_model], faults=[kill])) == [of_model]


def test_a_picture_is_drawn_of_what_was_seen(tmp_path):
    seen = soak(
        faults=[Fault("kill search", 99.0, 104.0, excuses=True)],
        replies=[Reply(100.0, 101.0, text="x", failure="503")],
        lags=[(100.0, 2.0, FILE), (101.0, 0.5, MESSAGE)],
        memory=[(50, "search", 100.0, 1e8)],
        quiet=[(200.0, 220.0)],
    )
    draw(seen, tmp_path / "soak.png")
    assert (tmp_path / "soak.png").stat().st_size > 10_000


# planted bugs, each on writes that only take note of what they were given


class Written:
    """Stands in for an index: what was written last under each id."""

    def __init__(self):
        self.documents = {}

    def write(self, documents):
        self.documents |= {one.id: one for one in documents}
        return [Outcome(one.id, "deleted" if one.deleted else "indexed") for one in documents]

    def get_many(self, ids):
        return {id: self.documents[id] for id in ids if id in self.documents}


def planted_kinds(bug, *batches):
    """What the checker finds after these writes, with the bug and without."""
    sent, found = history(*[document for batch in batches for document in batch]), []
    for write in (Written.write, bug(Written.write)):
        index = Written()
        for batch in batches:
            outcomes = write(index, [kept(one) for one in batch])
            assert [outcome.id for outcome in outcomes] == [one.id for one in batch]
        found.append(set(index_kinds(sent, *index.documents.values())))
    return found


@pytest.mark.parametrize(
    ("bug", "kind"), [(planted.lose, LOST), (planted.revive, REVIVED), (planted.duplicate, DUPLICATED)]
)
def test_a_planted_bug_is_found(bug, kind):
    companies = [company(f"c{number}", description=f"brews {number}") for number in range(planted.EVERY)]
    deleted = [Document.tombstone(one.id, 20) for one in companies[:10]]
    assert planted_kinds(bug, companies, deleted) == [set(), {kind}]


def test_a_planted_mix_of_recipes_is_found():
    text_of = planted.mix(lambda document, recipe: recipe.render(vars(document)))
    companies = [company(f"c{number}", description=f"brews {number}", tags=("ale",)) for number in range(planted.EVERY)]
    documents = [replace(kept(one), text_hash=text_hash(text_of(one, CONTRACTS[A].recipe))) for one in companies]
    assert index_kinds(history(*companies), *documents) == [MIXED]


# proxies that misbehave


@pytest.fixture
def answering():
    """A server that answers every request with its own path."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", str(len(self.path)))
            self.end_headers()
            self.wfile.write(self.path.encode())

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=[0.05])
        thread.start()
        yield server.server_address
        server.shutdown()
        thread.join()


def asked(address, path="/some/path"):
    """The status and what was answered; ConnectionError where it broke."""
    with closing(http.client.HTTPConnection(address, timeout=10)) as connection:
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read()
        except http.client.HTTPException as error:
            raise ConnectionError(str(error)) from error


def statuses(address, many=30):
    found = []
    for _ in range(many):
        try:
            found.append(asked(address)[0])
        except ConnectionError:
            found.append(0)
    return set(found)


@pytest.mark.parametrize(("trouble", "seen"), [("429", 429), ("503", 503), ("drop", 0), ("cut", 0)])
def test_the_proxy_of_elasticsearch_makes_some_requests_suffer_while_a_fault_lasts(answering, trouble, seen):
    proxy = HttpProxy("http://{}:{}".format(*answering), seed=1)
    address = proxy.address.removeprefix("http://")
    try:
        assert asked(address) == (200, b"/some/path")
        proxy.trouble = trouble
        assert statuses(address) == {200, seen}
        proxy.trouble = ""
        assert statuses(address) == {200}
    finally:
        proxy.stop()


def test_the_proxy_of_the_server_drops_connections_while_a_fault_lasts(answering):
    proxy = TcpProxy(lambda: answering, seed=1)
    try:
        assert asked(proxy.address) == (200, b"/some/path")
        proxy.trouble = "drop"
        assert statuses(proxy.address) == {200, 0}
        proxy.trouble = "slow"
        assert statuses(proxy.address, 2) == {200}
        proxy.trouble = ""
        assert statuses(proxy.address) == {200}
    finally:
        proxy.stop()


def test_memory_counts_a_process_and_those_below_it():
    alone = resident_bytes(os.getpid())
    with subprocess.Popen([sys.executable, "-c", "x = b'x' * 50_000_000; input()"], stdin=subprocess.PIPE) as child:
        wait_until(lambda: resident_bytes(os.getpid()) > alone + 50e6, child)
        child.communicate(b"\n")
