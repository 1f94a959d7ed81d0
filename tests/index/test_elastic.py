"""What only the index in Elasticsearch promises, held against the real server."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from companies import DIMENSION, MODEL, OTHER_MODEL, company, found, state, statuses
from elasticsearch import BadRequestError

from index.base import Spec
from index.document import Document, Filters
from index.elastic.loads import LEASE_SECONDS, Loads
from index.errors import IndexMissing, IndexUnusable, WrongModel
from index.open import open_index

SPEC = Spec(MODEL, DIMENSION)
KILLED = "another-machine/1/a"


@pytest.fixture
def url(elasticsearch) -> str:
    return elasticsearch.new_url()


@pytest.fixture
def index(url):
    return open_index(url, create=SPEC)


def settings(index):
    name = index.status().physical
    kept = index._client.indices.get_settings(index=name)[name]["settings"]["index"]
    return kept.get("refresh_interval"), kept["number_of_replicas"]


def source(index, id):
    return index._client.get(index=index.status().physical, id=id)["_source"]


# loads


def test_a_load_goes_without_refreshing_and_replicas_and_gives_both_back(index):
    name = index.status().physical
    index._client.indices.put_settings(index=name, settings={"refresh_interval": "7s", "number_of_replicas": 2})
    with index.loading():
        assert settings(index) == ("-1", "0")
        index.write([company("a")])
    assert settings(index) == ("7s", "2")
    assert found(index.search("company", 9)) == ["a"]


def test_a_load_that_fails_gives_both_back(index):
    before = settings(index)
    with pytest.raises(RuntimeError, match="broke"), index.loading():
        assert settings(index) != before
        raise RuntimeError("broke")
    assert settings(index) == before


def test_what_a_dead_load_left_is_put_right_by_who_opens_next(index, url):
    before = settings(index)
    loads = Loads(url, index._client, index.status().physical)
    loads.begin(KILLED, time.time() - LEASE_SECONDS - 1)
    assert settings(index) == ("-1", "0") != before
    assert settings(open_index(url)) == before
    assert "loading" not in index._place().meta


def test_what_a_dead_load_left_is_put_right_by_who_writes_next(index, url):
    before = settings(index)
    Loads(url, index._client, index.status().physical).begin(KILLED, time.time() - LEASE_SECONDS - 1)
    assert settings(index) != before
    index.write([company("a")])
    assert settings(index) == before


def test_a_load_after_one_that_died_ends_for_both(index, url):
    before = settings(index)
    Loads(url, index._client, index.status().physical).begin(KILLED, time.time() - LEASE_SECONDS - 1)
    with index.loading():
        assert settings(index) == ("-1", "0")
    assert settings(index) == before


def test_what_is_written_is_found_within_seconds_without_a_refresh(index):
    written = time.monotonic()
    index.write([company("a")])
    while not index.search("company", 1) and time.monotonic() - written < 20:
        time.sleep(0.05)
    assert time.monotonic() - written < 5  # a second, on a machine with nothing else to do


def test_a_load_under_way_is_left_alone_by_who_opens_and_restored_by_the_last(index, url):
    before = settings(index)
    with index.loading():
        other = open_index(url)
        with other.loading():
            pass
        assert settings(other) == ("-1", "0")
    assert settings(index) == before


def test_a_long_load_says_that_it_lives(index, monkeypatch):
    monkeypatch.setattr("index.elastic.store.RENEW_SECONDS", 0)
    with index.loading():
        (first,) = index._place().meta["loading"]["loaders"].values()
        index.write([company("a")])
        (later,) = index._place().meta["loading"]["loaders"].values()
    assert later > first


# documents


def test_vectors_are_kept_packed(index):
    index.write([company("a", 1, (0.6, 0.8, 0, 0))])
    assert isinstance(source(index, "a")["embedding"], str)


def test_a_server_that_takes_no_packed_vectors_gets_numbers(index, monkeypatch):
    monkeypatch.setattr("index.elastic.mapping.pack", lambda vector: "#")  # refused, as base64 is by older servers
    assert statuses(index.write([company(id, 1, (0.6, 0.8, 0, 0)) for id in "abc"])) == ["indexed"] * 3
    assert source(index, "a")["embedding"] == pytest.approx([0.6, 0.8, 0, 0])
    assert index.get("a").embedding.tolist() == np.array([0.6, 0.8, 0, 0], np.float32).tolist()


def test_a_document_the_server_refuses_fails_alone_and_older_ones_of_its_id_do_not_suffer(index):
    immense = "x" * 40_000  # a keyword ends at 32,766 bytes
    outcomes = index.write([company("a", 1), company("a", 2, sector=immense), company("b", 1)])
    assert statuses(outcomes) == ["indexed", "failed", "indexed"]
    assert outcomes[1].reason.startswith("sector: ")
    assert index.get("a").version == 1


def test_an_unknown_field_is_refused(index):
    with pytest.raises(BadRequestError, match="strict"):
        index._client.index(index=index.status().physical, document={"surprise": 1})


def test_a_tombstone_is_remembered_longer_than_the_server_remembers_deletes(index):
    name = index.status().physical
    index._client.indices.put_settings(index=name, settings={"gc_deletes": "0s"})
    index.write([company("a", 1), Document.tombstone("a", 5)])
    index.optimise()
    assert statuses(index.write([company("a", 4)])) == ["stale"]


def test_threads_that_share_an_index_write_each_id_once(index):
    def write(turn):
        return statuses(index.write([company(str(number), 1) for number in range(30)]))

    with ThreadPoolExecutor(4) as pool:
        outcomes = [status for turn in pool.map(write, range(8)) for status in turn]
    assert sorted(set(outcomes)) == ["indexed", "stale"] and outcomes.count("indexed") == 30
    assert len(state(index)) == 30


# addresses


def test_two_that_create_for_different_models_at_once_leave_one_index(url):
    def create(spec):
        try:
            return open_index(url, create=spec).spec()
        except WrongModel as error:
            return error

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(create, [SPEC, Spec(OTHER_MODEL, 3)]))
    kept = open_index(url).spec()
    assert kept in answers and kept in (SPEC, Spec(OTHER_MODEL, 3))


def test_a_name_that_something_else_has_is_refused(url, elasticsearch):
    client = open_index(elasticsearch.new_url(), create=SPEC)._client
    client.indices.create(index=url.rpartition("/")[2])
    for create in (None, SPEC):
        with pytest.raises(IndexUnusable, match="is taken"):
            open_index(url, create=create)


def test_what_a_dead_process_left_half_made_is_completed(index, url):
    alias, half_made = url.rpartition("/")[2], index.status().physical
    index._client.indices.delete_alias(index=half_made, name=alias)  # as if it had died before it went live
    with pytest.raises(IndexMissing):
        open_index(url)
    assert open_index(url, create=SPEC).status().physical == half_made


def test_rollback_passes_over_a_successor_that_never_went_live(index):
    index.successor(Spec("a" * 16, 3))
    index.successor(Spec("b" * 16, 3)).go_live()
    assert index.rollback().endswith(f"-{MODEL}-1")


# searching


@pytest.fixture
def grown(url):
    """3,000 random vectors of 32 numbers: more than are looked at on the way."""
    index = open_index(url, create=Spec(MODEL, 32))
    vectors = np.random.default_rng(2).normal(size=(3000, 32))
    index.write([company(str(n), 1, one, sector=f"s{n % 40}") for n, one in enumerate(vectors)])
    index.refresh()
    return index


def test_nearly_all_of_the_nearest_are_found_and_their_scores_are_cosines(grown):
    hits = asked = 0
    for query in np.random.default_rng(9).normal(size=(10, 32)).astype(np.float32):
        for filters in (Filters(), Filters(sector=("s1", "s2"))):
            exact = grown.nearest(query, 10, model=MODEL, filters=filters, exact=True)
            near = grown.nearest(query, 10, model=MODEL, filters=filters)
            cosines = {hit.document.id: hit.score for hit in exact}
            same = [hit for hit in near if hit.document.id in cosines]
            assert [hit.score for hit in same] == pytest.approx([cosines[hit.document.id] for hit in same], abs=1e-6)
            hits, asked = hits + len(same), asked + len(exact)
    assert asked == 200 and hits / asked >= 0.98
