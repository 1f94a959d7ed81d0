"""Hostile requests of every kind for a server of models: seeded, and as many as one likes."""

from collections.abc import Iterator
from random import Random

import hostile_grpc
import hostile_rest
from hostile_grpc import Grpc, Surroundings
from hostile_rest import Raw, Rest

LARGE_SHARE, REST_SHARE = 0.002, 0.3

Request = Grpc | Rest | Raw


def hostile_requests(seed: int, count: int, around: Surroundings) -> Iterator[Request]:
    random = Random(seed)
    for _ in range(count):
        place = random.random()
        if place < LARGE_SHARE:
            kinds = hostile_grpc.LARGE_KINDS + hostile_rest.LARGE_KINDS
        else:
            kinds = hostile_rest.KINDS if place < LARGE_SHARE + REST_SHARE else hostile_grpc.KINDS
        yield random.choice(kinds)(random, around)
