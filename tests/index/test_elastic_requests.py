"""What Elasticsearch is told and asked, without a server."""

import platform
import random
import subprocess
import sys

import numpy as np
import pytest
from companies import MODEL, company, vector

from index.base import Spec
from index.document import Document, Filters, fold
from index.elastic import queries
from index.elastic.cluster.connection import Address, Credentials, connect
from index.elastic.cluster.lease import new_holder
from index.elastic.mapping import mappings, pack, to_document, to_known, to_source, unpack, vector_kind
from index.elastic.results import apart
from index.elastic.writing.bulk_load import LEASE_SECONDS, joined, left
from index.elastic.writing.conflicts import action, resolution
from index.errors import IndexUnusable
from index.merge_versions import describe
from index.ranking.analysis import QUERY_WORDS, query_words, starts, telling_words, words
from index.ranking.fusion import Candidate

SPEC = Spec(MODEL, 384)

# mapping


def test_a_field_that_is_not_in_the_mapping_is_refused_and_every_field_written_is_in_it():
    told = mappings(SPEC, 7)
    assert told["dynamic"] == "strict"
    assert set(to_source(company("a"), 1)) == set(told["properties"])
    assert set(to_source(Document.tombstone("a", 1), 1)) < set(told["properties"])


def test_the_mapping_says_which_model_made_the_vectors():
    told = mappings(SPEC, 7)
    assert told["_meta"] == {"model": MODEL, "dimension": 384, "created_at": 7, "vectors": "int8_hnsw"}
    assert told["properties"]["embedding"]["dims"] == 384


@pytest.mark.parametrize(
    ("dimension", "companies", "kind"),
    [(384, 0, "int8_hnsw"), (384, 1_999_999, "int8_hnsw"), (384, 2_000_000, "bbq_hnsw"), (32, 9_000_000, "int8_hnsw")],
)
def test_vectors_are_kept_by_a_bit_a_number_where_there_are_many(dimension, companies, kind):
    assert vector_kind(dimension, companies) == kind
    told = mappings(Spec(MODEL, dimension), 1, companies)
    assert told["properties"]["embedding"]["index_options"] == {"type": kind}


def test_a_vector_is_packed_highest_byte_first():
    # 1.0 is 3f800000: bytes 3f 80 00 00, in base64 P4AAAA==
    assert pack(vector(1)) == "P4AAAA=="


def test_a_vector_comes_back_bit_for_bit_packed_or_not():
    numbers = np.random.default_rng(1).normal(size=384).astype(np.float32)
    for stored in (pack(numbers), numbers.tolist()):
        assert unpack(stored).dtype == np.float32 and unpack(stored).tobytes() == numbers.tobytes()


@pytest.mark.parametrize("document", [company("a", 3, tags=("x", "y")), Document.tombstone("a", 5)])
def test_a_document_survives_the_way_there_and_back(document):
    source = to_source(document, 0)
    assert to_document("a", source) == document
    assert to_known(source) == describe(document)


# conflicts


def stored(document, number, written=0):
    return {"found": True, "_version": number, "_source": to_source(document, written)}


def test_of_equal_versions_the_greater_order_is_sent_above_what_was_read():
    lesser, greater = sorted((company("a", 5, name="one"), company("a", 5, name="other")), key=lambda one: one.order)
    assert resolution(greater, stored(lesser, 7), "", 1, force=False) == 8
    assert resolution(lesser, stored(greater, 7), "", 1, force=False).status == "stale"
    assert resolution(lesser, stored(greater, 7), "", 1, force=True) == 8
    assert resolution(Document.tombstone("a", 5), stored(greater, 5), "", 1, force=False) == 6
    assert resolution(greater, stored(Document.tombstone("a", 5), 6), "", 1, force=False).status == "stale"


def test_a_number_that_ran_ahead_of_the_version_keeps_no_newer_document_out():
    assert resolution(company("a", 6), stored(company("a", 5), 6), "", 1, force=False) == 7


def test_what_was_removed_is_written_above_the_number_that_the_server_remembers():
    said = "[a]: version conflict, current version [6] is higher or equal to the one provided [6]"
    assert resolution(company("a", 6), {"found": False}, said, 1, force=False) == 7
    assert resolution(company("a", 6), {"found": False}, "said otherwise", 1, force=False) is None


def test_above_the_greatest_number_there_is_none():
    assert action(company("a"), 2**63)["index"]["version"] == 2**63 - 1
    assert action(company("a"), 2**63)["index"]["version_type"] == "external_gte"


# queries


def test_filters_are_any_of_the_values_and_all_of_the_fields_of_what_is_not_deleted():
    assert queries.matching(Filters(sector=("a", "b"), tags=("t",), exclude_ids=("x",))) == {
        "bool": {
            "filter": [{"term": {"deleted": False}}, {"terms": {"sector": ["a", "b"]}}, {"terms": {"tags": ["t"]}}],
            "must_not": [{"ids": {"values": ["x"]}}],
        }
    }


@pytest.mark.parametrize(("k", "size", "candidates"), [(10, 10, 200), (500, 500, 1000), (99_999, 10_000, 10_000)])
def test_more_is_looked_at_than_answered_within_what_the_server_allows(k, size, candidates):
    asked = queries.nearest(vector(1, 0), k, Filters(), "int8_hnsw")
    assert (asked["size"], asked["knn"]["k"], asked["knn"]["num_candidates"]) == (size, size, candidates)


def test_what_the_coarse_ranking_found_is_put_in_order_by_full_vectors():
    for kind, oversample in (("int8_hnsw", 2.0), ("bbq_hnsw", 8.0)):
        assert queries.nearest(vector(1, 0), 5, Filters(), kind)["knn"]["rescore_vector"] == {"oversample": oversample}


def test_a_text_without_words_is_not_asked_for():
    assert queries.by_words(" - \0 ", 5, Filters()) is None


# words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Étoile MOTORS", "etoile motor"),
        ("companies' glass, gas and bus", "company glass gas and bus"),
        ("Macy's trees, Macy\u2019s trees", "macy tree macy tree"),
        ("businesses, boxes and shoes", "business box and shoe"),
        ("3D-printing_R&D", "3d printing r d"),
        ("日本 beer", "日 本 beer"),
        ("\0 \ud800 ...", ""),
    ],
)
def test_words_are_folded_and_singular(text, expected):
    assert " ".join(words(text)) == expected


def test_a_plain_text_is_cut_as_any_other():
    chance = random.Random(4)
    for _ in range(2000):
        text = "".join(chance.choices("abS''_-.& 1\n\0", k=12))
        assert words(text) == words(f"{text} ж")[:-1]


def test_stop_words_stay_in_names_alone():
    assert words("The It Company") == ["the", "it", "company"]
    assert telling_words("The It Company") == ["company"]


def test_a_long_query_keeps_its_first_words_once_each():
    text = " ".join(f"w{number}" for number in range(1000))
    assert len(query_words(f"w0 w0 {text}").split()) == QUERY_WORDS


def test_a_name_starts_at_each_of_its_words():
    assert starts(fold("  Étoile  du Nord")) == ["etoile du nord", "du nord", "nord"]


# loads

ELSEWHERE, THERE = "another-machine/1/a", "another-machine/1/b"


def test_settings_from_before_are_those_the_first_loader_found():
    note = joined(None, {"refresh_interval": "5s", "number_of_replicas": "2"}, ELSEWHERE, 100)
    note = joined(note, {"refresh_interval": "-1", "number_of_replicas": "0"}, THERE, 110)
    assert note["was"] == {"refresh_interval": "5s", "number_of_replicas": "2", "auto_expand_replicas": None}
    assert note["loaders"] == {ELSEWHERE: 100 + LEASE_SECONDS, THERE: 110 + LEASE_SECONDS}


def test_the_last_loader_to_leave_is_the_last_that_lives():
    note = joined(joined(None, {}, ELSEWHERE, 0), {}, THERE, 100)
    assert left(note, "", 101) == note
    assert left(note, "", LEASE_SECONDS + 1)["loaders"].keys() == {THERE}
    assert left(note, THERE, LEASE_SECONDS + 1) is None


def test_a_loader_of_this_machine_whose_process_is_gone_is_dead_at_once():
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    alive, dead = new_holder(), f"{platform.node()}/{ended.pid}/a"
    note = joined(joined(None, {}, dead, 100), {}, alive, 100)
    assert left(note, "", 101)["loaders"].keys() == {alive}


# addresses


@pytest.mark.parametrize(
    ("url", "hosts", "alias"),
    [
        ("http://h:9201/companies", ("http://h:9201",), "companies"),
        ("https://a,b:1/x-1", ("https://a:9200", "https://b:1"), "x-1"),
        ("https://h:443/proxy/es/x/", ("https://h:443/proxy/es",), "x"),
        ("http://[::1]:9200/x", ("http://[::1]:9200",), "x"),
    ],
)
def test_an_address_names_hosts_and_an_alias(url, hosts, alias):
    assert Address.parse(url) == Address(hosts, alias)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://h:9200", "names no index"),
        ("http://h:9200/Big", "names no index"),
        ("http://h:9200/x?y=1", "names no index"),
        ("http://h:port/x", "not the address"),
        ("http:///x", "not host:port"),
        ("http://a:1,,b:2/x", "not host:port"),
    ],
)
def test_an_address_of_another_form_is_refused(url, said):
    with pytest.raises(IndexUnusable, match=said):
        Address.parse(url)


def test_a_password_in_an_address_is_refused_and_not_repeated():
    with pytest.raises(IndexUnusable, match="PAUSE_ES_USER") as refusal:
        Address.parse("https://me:hunter2@h:9200/x")
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"PAUSE_ES_USER": "u"}, "go together"),
        ({"PAUSE_ES_PASSWORD": "p"}, "go together"),
        ({"PAUSE_ES_API_KEY": "k", "PAUSE_ES_USER": "u", "PAUSE_ES_PASSWORD": "p"}, "keep one"),
        ({"PAUSE_ES_CA": "nowhere.pem"}, "'nowhere.pem'"),
    ],
)
def test_half_an_access_is_refused(environment, said):
    with pytest.raises(IndexUnusable, match=said):
        Credentials.from_environment(environment)


KEY, PASSWORD = {"PAUSE_ES_API_KEY": "hunter2"}, {"PAUSE_ES_USER": "u", "PAUSE_ES_PASSWORD": "hunter2"}


@pytest.mark.parametrize("secret", [KEY, PASSWORD])
@pytest.mark.parametrize(
    "url",
    [
        "http://es.internal:9200/x",
        "http://10.0.0.7:9200/x",
        "http://[fd00::1]:9200/x",
        "http://127.0.0.1.example.com/x",
        "http://localhost.example.com/x",
        "http://127.0.0.1,es.internal/x",
    ],
)
def test_no_secret_goes_to_another_machine_over_plain_http(url, secret):
    with pytest.raises(IndexUnusable, match=r"unencrypted: give an https:// .* PAUSE_ES_ALLOW_PLAIN_HTTP=1") as refusal:
        connect(Address.parse(url), Credentials.from_environment(secret))
    assert list(secret)[-1] in str(refusal.value)
    assert "hunter2" not in str(refusal.value) and "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("url", "environment"),
    [
        ("http://localhost:9200/x", KEY),
        ("http://127.8.9.10:9200/x", PASSWORD),
        ("http://[::1]:9200/x", KEY),
        ("https://es.internal:9200/x", KEY),
        ("http://es.internal:9200/x", {}),
        ("http://es.internal:9200/x", {**KEY, "PAUSE_ES_ALLOW_PLAIN_HTTP": "1"}),
    ],
)
def test_a_secret_stays_on_the_machine_or_is_encrypted_or_the_network_is_vouched_for(url, environment):
    connect(Address.parse(url), Credentials.from_environment(environment)).close()


@pytest.mark.parametrize("value", ["", "0", "no"])
def test_plain_http_is_allowed_by_nothing_but_a_one(value):
    assert not Credentials.from_environment({"PAUSE_ES_ALLOW_PLAIN_HTTP": value}).plain_http


def test_secrets_are_not_shown():
    assert "hunter2" not in repr(Credentials(user="u", password="hunter2")) + repr(Credentials(api_key="hunter2"))


# names as they are typed


def test_a_name_is_looked_for_however_it_is_joined_and_but_for_a_letter():
    query = queries.by_words_or_name("Ryan Air", 9, Filters(sector=("Transport",)))["query"]["bool"]
    named = query["should"][1]["constant_score"]
    pattern, misspelt = named["filter"]["bool"]["should"]
    value = pattern["regexp"]["name_starts"]["value"]
    assert value.startswith("r[^a-z0-9]*y[^a-z0-9]*a") and "n[^a-z0-9]*a[^a-z0-9]*i" in value
    assert (misspelt["match"]["name_words"]["query"], misspelt["match"]["name_words"]["fuzziness"]) == ("ryan air", 1)
    assert query["filter"] == [queries.matching(Filters(sector=("Transport",)))]


def test_what_has_no_letters_is_no_name():
    assert queries.by_words_or_name("!? .*", 9, Filters()) is None


def test_names_are_told_from_words_by_their_score():
    both, name, word = (Candidate(id, "", (), score) for id, score in (("b", 1007.0), ("n", 1000.0), ("w", 3.0)))
    worded, named = apart([both, name, word])
    assert [(one.id, one.score) for one in worded] == [("b", 7.0), ("w", 3.0)]
    assert [(one.id, one.score) for one in named] == [("b", 7.0), ("n", 0.0)]


def test_candidates_are_read_from_columns_and_no_document_is_unpacked():
    query = queries.candidates(queries.nearest(vector(1, 0, 0, 0), 9, Filters(), "int8_hnsw"))
    assert (query["_source"], query["docvalue_fields"]) == (False, ["name_folded", "industry", "tags"])
    stored = mappings(SPEC, 0)["properties"]
    assert all(stored[name].get("doc_values", True) for name in query["docvalue_fields"])
