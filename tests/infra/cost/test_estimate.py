import copy
import itertools

import numpy as np
import pytest
from pytest import approx
from worked_costs import PRICES, plan, rates

from common.errors import InputError
from index.elastic import mapping
from infra.cost.__main__ import estimate
from infra.cost.parts import vectors
from infra.cost.parts.vectors import BBQ_FROM

# One machine of serving: 8 vCPUs that do half of a core's 60 / 2 texts/s: 8 * 0.5 * 30 = 120 texts/s,
# for 8 * 0.03 + 16 * 0.004 = 0.304 an hour. A worker of Dataflow: 2 * 0.5 * 100 = 100 records/s.


def line(made, part, what):
    (found,) = [one for one in made.lines if (one.part, one.what) == (part, what)]
    return found


def test_the_first_load_as_worked_by_hand():
    made = estimate(plan())
    # 8.64 million / 120 texts/s = 72,000 s = 20 h of one machine, which is within the 24 h that are wanted.
    assert line(made, "first load", "serving machines").value == 1
    assert line(made, "first load", "hours").value == approx(20)
    assert line(made, "first load", "serving machines").money == approx(20 * 0.304)
    # 8.64 million / 100 records/s = 24 worker-hours of 2 * 0.05 + 8 * 0.0035 = 0.128
    assert line(made, "first load", "Dataflow worker-hours").value == approx(24)
    assert made.once("first load") == approx(6.08 + 24 * 0.128)


def test_a_fleet_of_n_takes_an_nth_of_the_time_for_the_same_money():
    one, ten = estimate(plan()), estimate(plan(fleet=10))
    assert ten.value("first load", "hours") == approx(one.value("first load", "hours") / 10)
    assert ten.once("first load") == approx(one.once("first load"))


def test_elasticsearch_ends_what_a_larger_fleet_can_gain():
    # A node writes 8 * 0.5 * 500 = 2,000 documents/s: 8.64 million in 4,320 s = 1.2 h, however many encode.
    made = estimate(plan(fleet=100))
    assert made.value("first load", "hours") == approx(1.2)
    assert "limited by Elasticsearch" in line(made, "first load", "hours").because
    assert line(made, "first load", "serving machines").money == approx(100 * 1.2 * 0.304)


def test_a_load_that_elasticsearch_limits_is_told_and_no_machine_is_paid_to_wait():
    # 100 million in 10 h would be 2,778 a second; 16 machines encode 1,920, a 17th would wait for the node's 2,000.
    made = estimate(plan(companies=1e8, load_hours=10))
    assert made.value("first load", "serving machines") == 16
    assert made.value("first load", "hours") == approx(1e8 / 1920 / 3600)
    assert any("Elasticsearch limits it" in warning for warning in made.warnings)


def test_the_month_as_worked_by_hand():
    made = estimate(plan())
    # 864,000 a day are 10 a second, 30 at the peak, of which 15 are encoded, with 4 of the 20 questions: 19 texts/s.
    assert made.value("serving", "texts at the peak") == approx(19)
    assert line(made, "serving", "machines").money == approx(2 * 0.304 * 730)  # two, since one may fail
    # A worker of 2 * 0.07 + 8 * 0.0035 = 0.168; 864,000 * 30.4167 * 1,000 bytes = 26.28 GB, twice by either way
    assert line(made, "stream", "Dataflow workers").money == approx(0.168 * 730)
    assert line(made, "stream", "Streaming Engine").money == approx(2 * 26.28 * 0.02)
    assert line(made, "stream", "Pub/Sub").money == approx(2 * 26.28 * 0.04)
    # Search: 2 * 0.5 / 0.005 = 200 questions/s a machine: two are more than enough, of 2 * 0.03 + 4 * 0.004 = 0.076.
    assert line(made, "search", "machines").money == approx(2 * 0.076 * 730)
    assert line(made, "search", "Kubernetes cluster").money == approx(73)
    # Elasticsearch: int8 8.64e6 * (384 + 4 + 64) = 3.905 GB, the successor's bits 8.64e6 * (48 + 14 + 64) = 1.089 GB,
    # heap 8.64 / 2.5 = 3.456, system 1: 9.45, so 10 GB; 8 * 0.03 + 10 * 0.004 = 0.28 an hour, a copy each.
    assert line(made, "Elasticsearch", "nodes").money == approx(2 * 0.28 * 730)
    # 5,000 bytes a company: 43.2 GB a copy, two copies of two indices at most 85 % full: 203.29 GB
    assert line(made, "Elasticsearch", "disk").money == approx(4 * 43.2 / 0.85 * 0.2)
    # 8.64 GB of records and 0.9 of models; a snapshot of 43.2 GB and 30 % of changes
    assert line(made, "storage", "dump and models").money == approx(9.54 * 0.02)
    assert line(made, "storage", "snapshots").money == approx(43.2 * 1.3 * 0.02)
    assert made.monthly == approx(443.84 + 122.64 + 1.0512 + 2.1024 + 110.96 + 73 + 408.8 + 40.6588 + 0.1908 + 1.1232)


def test_vectors_take_what_elasticsearch_documents():
    assert vectors.memory_bytes(1, 384, "int8_hnsw") == 384 + 4 + 64
    assert vectors.memory_bytes(1, 384, "bbq_hnsw") == 48 + 14 + 64
    assert vectors.memory_bytes(BBQ_FROM - 1, 384) > 3 * vectors.memory_bytes(BBQ_FROM, 384)
    # full vectors of 4 bytes a number, and in the source 16 / 3
    assert vectors.disk_bytes(1, 384, "int8_hnsw") == approx(452 + 384 * 4 + 384 * 16 / 3)


def test_an_index_has_the_vectors_that_its_mapping_chooses():
    for dimension, companies in itertools.product((63, 64, 384), (0, BBQ_FROM - 1, BBQ_FROM, 10 * BBQ_FROM)):
        assert vectors.vector_kind(dimension, companies) == mapping.vector_kind(dimension, companies)
    assert set(vectors.QUANTISED) == set(mapping.OVERSAMPLE)


NUMBERS = ("companies", "updates_per_day", "questions_per_second", "record_bytes", "replicas")


@pytest.mark.parametrize("name", NUMBERS)
def test_more_never_costs_less(name):
    grids = {
        "companies": np.unique([*np.geomspace(1, 1e9, 400), BBQ_FROM - 1, BBQ_FROM, BBQ_FROM + 1]),
        "updates_per_day": [0, *np.geomspace(1, 1e9, 300)],
        "questions_per_second": [0, *np.geomspace(0.01, 1e5, 300)],
        "record_bytes": np.geomspace(1, 4e6, 100),
        "replicas": range(10),
    }
    figures = rates(companies=(36_642, 1))  # so that larger indices take longer to search and to write
    for shown in ({}, {"load_hours": 1000.0}, {"least_machines": 1, "replicas": 0} if name != "replicas" else {}):
        totals = [estimate(plan(figures=figures, **{**shown, name: value})).totals() for value in grids[name]]
        for less, more in itertools.pairwise(totals):
            assert all(more[kind] >= less[kind] * (1 - 1e-12) for kind in less), (name, less, more)
        assert totals[-1]["a month"] > totals[0]["a month"]


def test_every_figure_has_a_unit_and_a_reason():
    made = estimate(plan())
    assert all(one.unit and len(one.because) > 10 for one in made.lines)
    assert {one.unit for one in made.lines} == {"machines", "h", "texts/s", "records/s", "GB", "clusters"}
    assert all(one.per in ("month", "once") for one in made.lines if one.money)


def test_one_machine_is_offered_where_it_is_enough_and_not_added_to_the_month():
    small = estimate(plan(companies=1e5, updates_per_day=0, questions_per_second=0))
    offered = line(small, "one machine instead", "machines")
    # 0.304 * 730 = 221.92 and 2 * 100,000 bytes * 0.2 a GB
    assert (offered.per, offered.money) == ("month instead", approx(221.92 + 2 * 1e5 / 1e9 * 0.2))
    assert small.monthly == approx(sum(one.money for one in small.lines if one.per == "month"))
    for more in ({"companies": 1.1e6}, {"companies": 1e5, "questions_per_second": 200}):
        assert "one machine instead" not in {one.part for one in estimate(plan(**more)).lines}


def every_price(table, path=()):
    for name, value in table.items():
        yield from every_price(value, (*path, name)) if isinstance(value, dict) else [(*path, name)]


@pytest.mark.parametrize("path", [path for path in every_price(PRICES) if len(path) > 1])
def test_a_missing_price_is_named(path):
    lacking = copy.deepcopy(PRICES)
    place = lacking
    for name in path[:-1]:
        place = place[name]
    del place[path[-1]]
    with pytest.raises(InputError, match=f"lacks {'.'.join(path)}; add a line `{path[-1]} = ...` under"):
        estimate(plan(prices=lacking))


@pytest.mark.parametrize("wrong", ["free", -1, True, None])
def test_what_is_no_price_is_refused(wrong):
    table = copy.deepcopy(PRICES) | {"pubsub": {"gb": wrong}}
    with pytest.raises(InputError, match=r"pubsub\.gb of prices\.toml is"):
        estimate(plan(prices=table))


def test_one_shard_is_told_when_it_is_too_large_or_written_too_much():
    assert estimate(plan()).warnings == []
    (large,) = estimate(plan(companies=1e8, load_hours=1000)).warnings
    assert "one shard of 500 GB" in large
    # 30 million a day, threefold at the peak, are 1,042 a second: more than 60 % of 2,000 is 1,200 at 34.56 million.
    assert estimate(plan(updates_per_day=34.5e6)).warnings == []
    (busy,) = estimate(plan(updates_per_day=35e6)).warnings
    assert "61% of what the node of one shard can write" in busy
