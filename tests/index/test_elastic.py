"""What only the index in Elasticsearch promises, held against the real server."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from companies import DIMENSION, MODEL, OTHER_MODEL, company, found, state, statuses
from elasticsearch import BadRequestError

from index.base import Spec
from index.document import Document, Filters
from index.elastic.writing.bulk_load import LEASE_SECONDS, BulkLoad
from index.elastic.writing.moves import Moves
from index.errors import IndexMissing, IndexUnavailable, IndexUnusable, WrongModel
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
    loads = BulkLoad(url, index._client, index.status().physical)
    loads.begin(KILLED, time.time() - LEASE_SECONDS - 1)
    assert settings(index) == ("-1", "0") != before
    assert settings(open_index(url)) == before
    assert "loading" not in index._physical().meta


def test_what_a_dead_load_left_is_put_right_by_who_writes_next(index, url):
    before = settings(index)
    BulkLoad(url, index._client, index.status().physical).begin(KILLED, time.time() - LEASE_SECONDS - 1)
    assert settings(index) != before
    index.write([company("a")])
    assert settings(index) == before


def test_a_load_after_one_that_died_ends_for_both(index, url):
    before = settings(index)
    BulkLoad(url, index._client, index.status().physical).begin(KILLED, time.time() - LEASE_SECONDS - 1)
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


def test_a_loader_that_writes_nothing_keeps_its_load_while_others_write(index, url, monkeypatch):
    monkeypatch.setattr("index.elastic.writing.bulk_load.LEASE_SECONDS", 1.0)
    monkeypatch.setattr("index.elastic.writing.bulk_load.RENEW_SECONDS", 0.1)
    monkeypatch.setattr("index.elastic.store.LOOK_SECONDS", 0.0)
    monkeypatch.setattr("index.elastic.cluster.lease.platform.node", lambda: "another-machine")
    other = open_index(url)
    with index.loading():
        monkeypatch.setattr("index.elastic.cluster.lease.platform.node", lambda: "this-machine")
        began = time.monotonic()
        while time.monotonic() - began < 3:
            other.write([company("a", time.time_ns())])
            time.sleep(0.1)
        assert settings(index) == ("-1", "0")
    assert settings(index) == ("1s", "1")


@pytest.mark.parametrize("skew", [-86_400, 86_400])
def test_a_wrong_clock_neither_ends_a_load_that_lives_nor_keeps_a_dead_one(index, url, skew, monkeypatch):
    before, right = settings(index), time.time
    with index.loading():
        monkeypatch.setattr(time, "time", lambda: right() + skew)
        monkeypatch.setattr("index.elastic.cluster.lease.platform.node", lambda: "another-machine")
        open_index(url).write([company("a")])
        assert settings(index) == ("-1", "0")
    assert settings(index) == before
    monkeypatch.setattr("index.elastic.writing.bulk_load.LEASE_SECONDS", 0.5)
    loads = BulkLoad(url, index._client, index.status().physical)
    loads.begin("a-third-machine/1/a", loads.now())  # and dies
    assert settings(index) != before
    time.sleep(0.6)
    open_index(url)
    assert settings(index) == before


# a swap


@pytest.fixture
def successor(index):
    return index.successor(Spec(OTHER_MODEL, DIMENSION))


def test_a_write_that_was_on_its_way_to_the_former_index_is_not_acknowledged_there(index, successor, monkeypatch):
    """Resolved before the swap, sent after it."""
    live, bulk = index.fixed(), index._client.bulk

    def swap_first(**request):
        monkeypatch.setattr(index._client, "bulk", bulk)
        with live.frozen():
            successor.go_live()
        return bulk(**request)

    monkeypatch.setattr(index._client, "bulk", swap_first)
    with pytest.raises(WrongModel):
        index.write([company("late")])
    assert live.known(["late"]) == {}


def test_a_delete_that_was_on_its_way_follows_the_alias(index, successor, monkeypatch):
    bulk = index._client.bulk
    live = index.fixed()

    def swap_first(**request):
        monkeypatch.setattr(index._client, "bulk", bulk)
        with live.frozen():
            successor.go_live()
        return bulk(**request)

    monkeypatch.setattr(index._client, "bulk", swap_first)
    assert statuses(index.write([Document.tombstone("a", 7)])) == ["deleted"]  # has no model to be wrong about
    assert list(successor.known(["a"])) == ["a"] and live.known(["a"]) == {}


def test_a_write_to_an_index_that_was_dropped_follows_the_alias_and_makes_nothing_anew(index, successor, monkeypatch):
    bulk, former = index._client.bulk, index.status().physical

    def drop_first(**request):
        monkeypatch.setattr(index._client, "bulk", bulk)
        successor.go_live()
        index._client.indices.delete(index=former)
        return bulk(**request)

    monkeypatch.setattr(index._client, "bulk", drop_first)
    assert statuses(index.write([Document.tombstone("a", 7)])) == ["deleted"]
    assert list(successor.known(["a"])) == ["a"]
    assert not index._client.indices.exists(index=former)


def test_writers_wait_for_a_move_that_lives_and_go_on_where_it_is_given_up(index, successor):
    live = index.fixed()
    with ThreadPoolExecutor(1) as pool, live.moving(successor):
        with live.frozen():
            writing = pool.submit(index.write, [company("a")])
            time.sleep(1)
            assert not writing.done() and index.known(["a"]) == {}
        assert statuses(writing.result(20)) == ["indexed"]


def test_what_a_dead_move_left_frozen_is_thawed_by_who_writes(index, successor, monkeypatch):
    monkeypatch.setattr("index.elastic.writing.moves.LEASE_SECONDS", 2.0)
    die_frozen(index.fixed(), successor)
    began = time.monotonic()
    assert statuses(index.write([company("a")])) == ["indexed"]
    assert time.monotonic() - began < 15
    assert statuses(index.write([company("b")])) == ["indexed"]


def test_what_a_dead_move_left_frozen_is_thawed_by_the_next_move(index, successor, monkeypatch):
    monkeypatch.setattr("index.elastic.writing.moves.LEASE_SECONDS", 1.0)
    live = index.fixed()
    die_frozen(live, successor)
    with pytest.raises(IndexUnusable, match=r"is being moved to .* by another-machine"), live.moving(successor):
        pass
    time.sleep(1.1)
    with live.moving(successor):
        assert statuses(index.write([company("a")])) == ["indexed"]


def die_frozen(live, successor):
    """As a move on another machine that was killed before its swap."""
    moves = Moves(live._aliases, live._pinned)
    moves._renew("another-machine/1/a", successor._pinned)
    moves._change("add")
    live._client.indices.add_block(index=live._pinned, block="write")


def test_a_block_that_an_administrator_has_set_is_waited_for_and_left(index, monkeypatch):
    monkeypatch.setattr("index.elastic.cluster.retry.SECONDS", 1.0)
    name = index.status().physical
    index._client.indices.add_block(index=name, block="write")
    with pytest.raises(IndexUnavailable, match=r"403 .*blocked by"):
        index.write([company("a")])
    with pytest.raises(IndexUnavailable, match=r"403 .*blocked by"):
        index.purge(0) or index.remove(index.known(["a"])) or index.write([Document.tombstone("a", 1)])


def test_a_freeze_that_was_broken_says_so(index, successor):
    live = index.fixed()
    with live.frozen() as holds:
        assert holds()
        Moves(live._aliases, live._pinned).thaw()
        assert not holds()


def test_the_former_index_stays_closed_after_the_swap(index, successor, monkeypatch):
    monkeypatch.setattr("index.elastic.cluster.retry.SECONDS", 0.5)
    live = index.fixed()
    with live.moving(successor), live.frozen():
        successor.go_live()
    with pytest.raises(IndexUnavailable, match="blocked by"):
        live.write([company("a")])
    with index.fixed().moving(live):  # to go back to
        assert statuses(live.write([company("a")])) == ["indexed"]


def test_a_swap_is_refused_where_another_was_faster(index, successor):
    other = index.successor(Spec("f" * 16, DIMENSION))
    other.go_live()
    with pytest.raises(IndexUnusable, match="nothing was changed"):
        successor.go_live()
    assert index.spec().model == "f" * 16


def test_an_index_from_before_there_was_an_alias_to_write_by_gets_one(index):
    name = index.status().physical
    index._client.indices.delete_alias(index=name, name=f"{name}.writes")
    assert statuses(index.write([company("a")])) == ["indexed"]


def test_a_reader_goes_on_when_the_index_it_remembers_is_dropped(url, index, monkeypatch):
    monkeypatch.setattr("index.elastic.store.READER_SECONDS", 60.0)
    index.write([company("a")])
    index.refresh()
    reader = open_index(url, retry_seconds=5.0)
    assert found(reader.search("company", 9)) == ["a"]
    successor = index.successor(Spec(OTHER_MODEL, DIMENSION))
    successor.write([replace(company("b"), model=OTHER_MODEL)])
    successor.refresh()
    successor.go_live()
    index.drop_former()
    assert list(reader.get_many(["a", "b"])) == ["b"]
    assert found(reader.search("company", 9)) == ["b"]


# orders


def test_writers_of_one_version_at_once_leave_the_greatest_whoever_comes_last(index):
    names = [f"name {number}" for number in range(12)]
    greatest = max((company("a", 5, name=name) for name in names), key=lambda one: one.order)
    for turn in range(5):
        id = f"turn {turn}"
        with ThreadPoolExecutor(12) as pool:
            list(pool.map(lambda name: index.write([company(id, 5, name=name)]), names))  # noqa: B023
        ours = max((company(id, 5, name=name) for name in names), key=lambda one: one.order)
        assert index.get(id).name == ours.name
    assert greatest.version == 5


def test_a_purged_company_can_be_written_in_whatever_version_at_once(index):
    index.write([company("a", 5), Document.tombstone("a", 5)])  # by one call, and its number runs ahead
    index.write([company("b", 5)])
    index.write([Document.tombstone("b", 5)])
    assert index.purge(0) == 2
    assert statuses(index.write([company("a", 6), company("b", 6)])) == ["indexed"] * 2
    assert {id: one.version for id, (one, _) in state(index).items()} == {"a": 6, "b": 6}
    assert statuses(index.write([company("a", 5), company("b", 7)])) == ["stale", "indexed"]


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


# scans


def open_scans(index):
    name = index.status().physical
    return index._client.indices.stats(index=name, metric="search")["indices"][name]["total"]["search"]["open_contexts"]


def test_a_scan_that_is_given_up_sends_nothing_as_it_is_collected_and_is_ended_by_the_next(index, monkeypatch):
    """Python may collect it in the middle of another request, while that holds the connections' lock."""
    index.write([company("a"), company("b")])
    scan, sent = index.scan(1), []
    next(scan)
    assert open_scans(index) == 1
    monkeypatch.setattr(index._client, "close_point_in_time", lambda **given: sent.append(given))
    scan.close()
    monkeypatch.undo()
    assert sent == [] and open_scans(index) == 1
    assert len(list(index.scan(1))) == 2
    assert open_scans(index) == 0
