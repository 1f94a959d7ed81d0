"""Some hundreds of hostile requests of every kind: each is refused by name or answered right, and nothing changes."""

import pytest
from embedded import EmbeddedServer

from benchmarks.hostile import grpc_requests, rest_requests
from benchmarks.hostile.grpc_requests import Surroundings
from benchmarks.hostile.serving import Target, attack
from benchmarks.hostile.serving_requests import hostile_requests

COUNT = 600


@pytest.fixture
def around(base, tmp_path):
    (tmp_path / "victim" / "7").mkdir(parents=True)
    (tmp_path / "victim" / "7" / "letters.txt").write_text("kept")
    return Surroundings(str(base), str(tmp_path / "victim"))


def test_the_same_seed_makes_the_same_requests_and_every_kind_is_among_them(around):
    made = list(hostile_requests(7, 5_000, around))
    assert made == list(hostile_requests(7, 5_000, around))
    assert made[:50] != list(hostile_requests(8, 50, around))
    kinds = [len(each) for room in (grpc_requests, rest_requests) for each in (room.KINDS, room.LARGE_KINDS)]
    assert len({request.kind for request in made}) == sum(kinds)


def test_hostile_requests_are_refused_by_name_and_change_nothing(base, around):
    with EmbeddedServer(base, "--xla_cpu_compilation_enabled=false") as server:
        log = server.log
        found = attack(Target(server.address, server.rest, server.process.pid, around), COUNT)
        assert found.faults == []
        assert sum(found.responses.values()) == COUNT and len({response for _, response in found.responses}) > 5
        assert server.process.poll() is None
        assert server.log == log
