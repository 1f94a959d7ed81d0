"""Killed at any moment and started again with the same command, a run ends in the index of an undisturbed one."""

import random
import signal
import subprocess
import time

import numpy as np
import pytest
from companies import state
from place import Place

from index.base import Index
from index.errors import IndexMissing

KILLS, COMPANIES = 10, 600
AT = "2024-05-01T12:00:00Z"
FLAGS = ("--runner=DirectRunner", "--batch_size=16")
SEED = 7


@pytest.fixture(params=["lance", "elasticsearch"])
def new_index(request, tmp_path):
    """Of a number: the address of an index of its own."""
    if request.param == "lance":
        return lambda number: str(tmp_path / f"index-{number}")
    server = request.getfixturevalue("elasticsearch_server")
    return lambda number: f"{server.address}/killed-{number}"


def test_ten_killed_runs_end_as_an_undisturbed_one(server, new_index, tmp_path):
    place = Place(tmp_path / "clean", server.address, new_index("clean"))
    deleted = [{"id": f"c{number}", "deleted": True, "updated_at": AT} for number in range(0, COMPANIES, 50)]
    companies = [
        {"id": f"c{number}", "description": f"Makes part {number}", "sector": f"S{number % 7}", "updated_at": AT}
        for number in range(COMPANIES)
        if number % 50
    ]
    path = place.file(*deleted, *companies)
    undisturbed = place.start("--input", str(path), *FLAGS)
    _, said = undisturbed.communicate()
    assert undisturbed.returncode == 0, said
    wanted = state(place.index)

    moments = random.Random(SEED)
    found_at = []
    for number in range(KILLS):
        killed = Place(tmp_path / str(number), server.address, new_index(number))
        kill(killed, killed.start("--input", str(path), *FLAGS), moments)
        left = opened(killed)
        found_at.append(left.status().live if left else 0)
        counts = killed.run(path, *FLAGS)
        assert counts["read"] == COMPANIES
        assert_same(state(killed.index), wanted)
        assert counts.get("encoded", 0) <= len(companies) - found_at[-1]  # work that was done is not done again
    assert sum(0 < done < len(companies) for done in found_at) >= KILLS // 2, (
        f"killed too late or too early: {found_at}"
    )


def kill(place: Place, run: subprocess.Popen, moments: random.Random) -> None:
    """When so many companies are there, and a little later."""
    many, index = moments.randrange(COMPANIES), None
    try:
        while run.poll() is None and (index is None or index.status().live < many):
            time.sleep(0.02)
            index = index or opened(place)
        time.sleep(moments.uniform(0, 0.1))
    finally:
        run.send_signal(signal.SIGKILL)
        run.communicate()


def opened(place: Place) -> Index | None:
    try:
        return place.index
    except IndexMissing:
        return None


def assert_same(found: dict, wanted: dict) -> None:
    """A text's vector depends on the texts it was padded beside, in the last digits."""
    assert {id: document for id, (document, _) in found.items()} == {
        id: document for id, (document, _) in wanted.items()
    }
    for id, (_, vector) in wanted.items():
        assert (vector is None) == (found[id][1] is None)
        if vector is not None:
            np.testing.assert_allclose(found[id][1], vector, atol=1e-5)
