import time

import numpy as np
import pytest
from pytest import approx

from common.errors import InputError
from infra.cost.day.arrivals import EVEN, Rhythm, arrivals, expected
from infra.cost.day.outages import DAY_SECONDS, Outage, parse, parse_all
from infra.cost.day.simulation import LOOK, TAIL, Fleet, backlog_after, simulate, waits


def steady(records_a_second, seconds=DAY_SECONDS + TAIL):
    return np.full(seconds, float(records_a_second))


def fixed(records_each, machines=1):
    return Fleet("workers", records_each, machines, machines, delay=0)


# the queue


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_a_queue_with_poisson_arrivals_waits_as_pollaczek_and_khinchine_say(load):
    # M/D/1 with a service time of 1: what an arrival finds is in the mean load / (2 (1 - load)); slots of a fiftieth
    # are short beside the service.
    slot, chance = 0.02, np.random.default_rng(5)
    arrived = chance.poisson(load * slot, 5_000_000).astype(float)
    waiting = backlog_after(arrived, np.full(len(arrived), slot))
    assert waiting.mean() == approx(load / (2 * (1 - load)), rel=0.04)


def test_the_backlog_without_a_loop_is_the_recursion_with_one():
    chance = np.random.default_rng(6)
    arrived, capacity = chance.poisson(3, 1000).astype(float), chance.uniform(0, 6, 1000)
    expected_backlog, waiting = [], 7.5
    for came, able in zip(arrived, capacity, strict=True):
        waiting = max(0.0, waiting + came - able)
        expected_backlog.append(waiting)
    assert backlog_after(arrived, capacity, before=7.5) == approx(np.array(expected_backlog))


def test_records_leave_in_the_order_they_came():
    # Four come at once and one is served a slot: the middle of the four is done after the second slot. Who came a slot
    # later, of whom there is none here, would wait for the other two.
    arrived = np.array([4.0, 0, 0, 0, 0, 2.0])
    backlog = backlog_after(arrived, np.ones(6))
    assert backlog == approx(np.array([3, 2, 1, 0, 0, 1]))
    assert list(waits(arrived, backlog)) == [1, 2, 1, 0, 0, 0]


# a day


def test_an_outage_leaves_what_the_fluid_limit_says():
    # 10 a second, 25 can be written, away for 1,200 s: 12,000 wait at its end, gone after 12,000 / 15 = 800 s more;
    # the first of them has waited for all of it, and 2,000 s of the day's arrivals have waited at all.
    outage = Outage("elasticsearch", 36_000, 1200)
    day = simulate(steady(10), [fixed(25)], [outage])
    assert day.backlog.max() == approx(12_000)
    assert day.backlog.argmax() == 37_199
    busy = np.flatnonzero(day.backlog)
    assert (busy[0], busy[-1]) == (36_000, approx(37_199 + 800, abs=1))
    assert day.waits.max() == approx(1200, abs=1)
    # Each of those waits falls in a line from 1,200 s to 0: of 864 seconds, a hundredth of the day, all waited longer
    # than 1,200 * (1 - 864 / 2,000) = 681.6.
    assert day.percentile(99, written=0) == approx(681.6, abs=2)
    assert day.percentile(50, written=1.5) == 1.5


def test_what_cannot_be_written_in_time_is_said_and_not_averaged():
    figures = simulate(steady(10), [fixed(9)]).figures()
    assert figures["largest_backlog"] == DAY_SECONDS
    # A ninth of a day after the day at the latest: 86,400 come in at 10, and leave at 9, a second.
    assert figures["longest_wait_s"] == approx(86_400 * 10 / 9 - 86_400, abs=2)
    assert simulate(steady(10), [fixed(5)]).figures()["freshness_p99_s"] is None


def test_machines_come_after_their_delay_and_go_when_they_are_no_longer_wanted():
    fleet = Fleet("serving", records_each=10, least=1, most=8, delay=300)
    arrived = steady(3)
    arrived[36_000:37_200] = 30.0
    day = simulate(arrived, [fleet])
    count = day.machines["serving"]
    more = np.flatnonzero(count > 1)
    # The look after the first full minute sees it; the machines are there five minutes later.
    assert more[0] == 36_000 + LOOK + 300
    assert count.max() > 3 and count[-1] == 1
    assert day.backlog[36_000 + LOOK + 300] > 20 * 300  # 30 come, 10 are written
    assert day.backlog[45_000] == 0


def test_no_fleet_leaves_its_bounds_and_the_slowest_part_rules():
    fleets = [Fleet("serving", 100, 2, 3, 60), Fleet("workers", 10, 1, 4, 60)]
    day = simulate(steady(200), fleets, limit=35)
    assert {name: (count.min(), count.max()) for name, count in day.machines.items()} == {
        "serving": (2, 3),
        "workers": (1, 4),
    }
    assert day.capacity.max() == 35


def test_nothing_comes_and_nothing_waits():
    figures = simulate(steady(0), [fixed(1)], writing=(1.5, 7.0)).figures()
    assert (figures["records"], figures["largest_backlog"]) == (0, 0)
    assert (figures["freshness_p50_s"], figures["freshness_p99_s"]) == (1.5, 7.0)


def test_a_hundred_million_companies_a_day_take_less_than_three_seconds_of_cpu():
    began = time.process_time()
    arrived = arrivals(1e8, DAY_SECONDS + TAIL, Rhythm(), seed=1)
    fleets = [Fleet("serving", 100, 2, 60, 180), Fleet("workers", 100, 1, 60, 240)]
    day = simulate(arrived, fleets, [Outage("serving", 36_000, 1200)])
    assert day.figures()["records"] == approx(1e8, rel=0.001)
    assert time.process_time() - began < 3


# arrivals


def test_a_day_brings_what_it_should_whatever_its_rhythm():
    chance = np.random.default_rng(0)
    for rhythm in (EVEN, Rhythm(), Rhythm(swing=1, bursts=5, burst_share=0.1)):
        assert expected(86_400, DAY_SECONDS, rhythm, chance).sum() == approx(86_400)
    assert set(expected(86_400, 100, EVEN, chance)) == {1.0}


def test_days_are_busiest_in_the_afternoon_and_one_seed_is_one_day():
    rate = expected(1e6, DAY_SECONDS, Rhythm(bursts=0), np.random.default_rng(0))
    assert rate.argmax() == 14 * 3600 and rate.max() / rate.min() == approx(1.6 / 0.4)
    one, same, other = (arrivals(1e6, 1000, Rhythm(), seed) for seed in (1, 1, 2))
    assert (one == same).all() and (one != other).any()


# outages


def test_an_outage_is_read_as_it_is_written():
    assert parse("serving@10:05+20m") == Outage("serving", 36_300, 1200)
    assert parse("elasticsearch@23:59+60s") == Outage("elasticsearch", 86_340, 60)
    assert parse_all(["none"]) == ()


@pytest.mark.parametrize(
    "wrong",
    ["serving", "search@10:00+5m", "serving@24:00+5m", "serving@10:60+5m", "serving@10:00+5", "serving@10:00+15h"],
)
def test_what_is_no_outage_is_named(wrong):
    with pytest.raises(InputError, match="--outage"):
        parse_all([wrong])


def test_none_is_none_alone():
    with pytest.raises(InputError, match="stands alone"):
        parse_all(["none", "serving@10:00+5m"])
