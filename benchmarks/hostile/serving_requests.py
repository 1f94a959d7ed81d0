"""Hostile requests of every kind for a server of models: seeded, and as many as one likes."""

from collections.abc import Callable, Iterator
from random import Random

from benchmarks.hostile import grpc_requests, rest_requests
from benchmarks.hostile.grpc_requests import Grpc, Surroundings
from benchmarks.hostile.rest_requests import Raw, Rest

LARGE_SHARE, REST_SHARE = 0.002, 0.3

Request = Grpc | Rest | Raw
Kind = Callable[[Random, Surroundings], Request]


def hostile_requests(seed: int, count: int, around: Surroundings) -> Iterator[Request]:
    random = Random(seed)
    for _ in range(count):
        place = random.random()
        kinds: list[Kind] = [*grpc_requests.LARGE_KINDS, *rest_requests.LARGE_KINDS]
        if place >= LARGE_SHARE:
            kinds = [*(rest_requests.KINDS if place < LARGE_SHARE + REST_SHARE else grpc_requests.KINDS)]
        yield random.choice(kinds)(random, around)
