"""One side of a comparison of two commits: the server or the search service of the tree that this runs in, asked when
told to. `benchmarks.compare` starts it by its path, in either tree; all else that it imports is that tree's own.

A line of JSON is a question, a line of JSON answers it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

Answer = Callable[[Any], float]
Side = Callable[..., AbstractContextManager[Answer]]


@contextmanager
def serving(version: str, texts: str) -> Iterator[Answer]:
    """A way of sending -> seconds for all texts."""
    from benchmarks.senders import senders
    from benchmarks.server import Server

    with Server(Path(version).parent) as server, senders(server.address, json.loads(Path(texts).read_text())) as ways:
        yield lambda way: ways[way]()


@contextmanager
def search(version: str, companies: str, vectors: str, url: str, log: str) -> Iterator[Answer]:
    """(kind, things to ask) -> milliseconds of the median question. The index is filled first."""
    import numpy as np

    from benchmarks.index import to_documents
    from benchmarks.search import load
    from benchmarks.server import Server
    from benchmarks.service import Caller, Service
    from benchmarks.sinks import removed
    from serving.client import EmbeddingClient

    with ExitStack() as stack:
        server = stack.enter_context(Server(Path(version).parent))
        with EmbeddingClient([server.address]) as client:
            fingerprint = client.contract().fingerprint
        documents = to_documents(json.loads(Path(companies).read_text()), np.load(vectors), fingerprint)
        load(url, documents, (lambda: None) if "://" in url else removed(Path(url)))
        caller = Caller(stack.enter_context(Service(url, server.address, Path(log))).address)
        kinds: dict[str, Callable[[str], object]] = {
            "similar": caller.similar,
            "vector": lambda text: caller.search(text, "vector"),
            "hybrid": lambda text: caller.search(text, "hybrid"),
            "suggest": caller.suggest,
        }

        def median(asked: tuple[str, list[str]]) -> float:
            kind, things = asked
            return float(np.median([1e3 * seconds(kinds[kind], thing) for thing in things]))

        yield median


def seconds(ask: Callable[[str], object], thing: str) -> float:
    start = time.perf_counter()
    ask(thing)
    return time.perf_counter() - start


SIDES: dict[str, Side] = {"serving": serving, "search": search}


def main(what: str, *arguments: str) -> None:
    # Libraries print what they like; only answers may go where the other end reads them.
    with os.fdopen(os.dup(sys.stdout.fileno()), "w") as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        with SIDES[what](*arguments) as answer:
            print(json.dumps("ready"), file=answers, flush=True)
            for line in sys.stdin:
                print(json.dumps(answer(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
