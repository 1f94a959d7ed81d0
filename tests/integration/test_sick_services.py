"""Services that go away in the middle of a run and come back: the run waits for them, ends by itself, loses nothing."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from busy_proxy import BusyProxy
from embedded import EmbeddedServer
from place import Place

from pipelines.metrics import counters as metrics

COMPANIES = 800
AWAY = 30.0  # seconds
ALL = {"encoded": COMPANIES, "indexed": COMPANIES, "read": COMPANIES}


@pytest.fixture
def run():
    """Starts a run of many small batches beside the test; its future, when some of them are written."""
    with ThreadPoolExecutor(1) as beside:

        def start(place: Place):
            companies = ({"id": f"c{number}", "description": f"Makes part {number}"} for number in range(COMPANIES))
            path, before = place.file(*companies), metrics.here().get("indexed", 0)
            running = beside.submit(place.run, path, "--batch_size=32")
            pause = threading.Event()
            while metrics.here().get("indexed", 0) < before + COMPANIES // 10:
                assert not running.done(), running.result()
                pause.wait(0.01)
            return running

        yield start


def test_an_endpoint_away_for_half_a_minute(base, run, tmp_path):
    with EmbeddedServer(base) as server:
        place = Place(tmp_path, server.address)
        running = run(place)
        server.kill()
        assert not threading.Event().wait(AWAY) and not running.done()
        server.restart()
        assert running.result() == ALL
    assert place.index.status().live == COMPANIES


def test_elasticsearch_restarted_in_the_middle(server, elasticsearch_server, run, tmp_path):
    place = Place(tmp_path, server.address, f"{elasticsearch_server.address}/restarted")
    running = run(place)
    elasticsearch_server.restart()
    assert running.result() == ALL
    place.index.refresh()
    assert place.index.status().live == COMPANIES


def test_a_busy_elasticsearch_that_turns_most_writes_away(server, elasticsearch_server, run, tmp_path):
    with BusyProxy(elasticsearch_server.address, busy="_bulk") as proxy:
        place = Place(tmp_path, server.address, f"{proxy.address}/busy")
        assert run(place).result() == ALL
        assert proxy.turned_away > 20
        place.index.refresh()
        assert place.index.status().live == COMPANIES
