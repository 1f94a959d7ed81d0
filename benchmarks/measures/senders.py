"""Load generators for a model server: one client with all texts, batches in turn or side by side, single texts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

from serving.client import EmbeddingClient

CALLS, CROWD = 4, 16  # at a time
ALL_AT_ONCE = "one embed() of all texts"
SIDE_BY_SIDE = f"batches of 32, {CALLS} calls at a time"
IN_TURN = "batches of 32, one call at a time"
SINGLES, SIXTEENS = f"{CROWD} clients, single texts", "one client, batches of 16"


@contextmanager
def senders(address: str, texts: Sequence[str]) -> Iterator[dict[str, Callable[[], float]]]:
    """Each sends all texts, in the order they have, and answers with the seconds until the last vector is there."""
    with ExitStack() as stack:
        clients = [stack.enter_context(EmbeddingClient([address])) for _ in range(CROWD)]
        client, pool = clients[0], stack.enter_context(ThreadPoolExecutor(CROWD))
        for each in clients:
            each.contract()  # connects
        batches, sixteens = split(texts, 32), split(texts, 16)

        def side_by_side() -> None:
            with ThreadPoolExecutor(CALLS) as few:
                list(few.map(client.embed, batches))

        def singles() -> None:
            waiting = iter(texts)  # whoever has an answer takes the next
            list(pool.map(lambda each: [each.embed([text]) for text in waiting], clients))

        yield {
            ALL_AT_ONCE: lambda: seconds(lambda: client.embed(texts)),
            SIDE_BY_SIDE: lambda: seconds(side_by_side),
            IN_TURN: lambda: seconds(lambda: [client.embed(batch) for batch in batches]),
            SINGLES: lambda: seconds(singles),
            SIXTEENS: lambda: seconds(lambda: [client.embed(batch) for batch in sixteens]),
        }


def split(texts: Sequence[str], size: int) -> list[Sequence[str]]:
    return [texts[start : start + size] for start in range(0, len(texts), size)]


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
