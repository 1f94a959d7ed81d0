"""One side of a comparison of two commits: server, pipeline or search service of the tree that this runs in, asked when
told to. `benchmarks.compare` starts it by its path, in either tree; all else that it imports is that tree's own.

A line of JSON is a question, a line of JSON the reply.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

Reply = Callable[[Any], float]
Side = Callable[..., AbstractContextManager[Reply]]


def find(name: str) -> ModuleType:
    """A module of the tree's own benchmarks; commits that have no such folder have it beside the commands."""
    folder, _, module = name.partition(".")
    return import_module(f"benchmarks.{name if find_spec(f'benchmarks.{folder}') else module}")


@contextmanager
def serving(version: str, texts: str) -> Iterator[Reply]:
    """A way of sending -> seconds for all texts."""
    start, senders = find("targets.server").Server, find("measures.senders").senders
    with start(Path(version).parent) as server, senders(server.address, json.loads(Path(texts).read_text())) as ways:
        yield lambda way: ways[way]()


@contextmanager
def encode(version: str, companies: str, count: str) -> Iterator[Reply]:
    """An index that is not there yet -> seconds of the job that fills it."""
    start, run = find("targets.server").Server, find("targets.job").run
    folder = Path("build/benchmarks/compare")  # the tree's own
    with start(Path(version).parent) as server:
        command = [sys.executable, "-m", "pipelines.encode", "--runner=DirectRunner", "--input", companies]
        command += ["--serving", server.address, "--dead_letters", str(folder / "dead_letters"), "--index"]
        yield lambda index: run([*command, index], folder / "pipeline.log", f"{int(count):,} indexed").seconds


@contextmanager
def stream(version: str, url: str) -> Iterator[Reply]:
    """(number of the first, texts, messages a second) -> milliseconds until the median message can be found."""
    import numpy as np

    from benchmarks.stream import FOLDER, follow, job, opened, topic
    from infra.local.pubsub import PubSub

    start = find("targets.server").Server
    FOLDER.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        server = stack.enter_context(start(Path(version).parent))
        fake = stack.enter_context(PubSub())
        publish, subscription = stack.enter_context(topic(fake.address))
        running = stack.enter_context(job(fake.address, subscription, server.address, url))
        index = opened(url, running)

        def median(asked: tuple[int, list[str], float]) -> float:
            first, texts, rate = asked
            return 1e3 * float(np.median(follow(index, publish, texts, rate, first, running)))

        yield median


@contextmanager
def search(version: str, companies: str, vectors: str, url: str, log: str) -> Iterator[Reply]:
    """(kind, things to ask) -> milliseconds of the median question. The index is filled first."""
    import numpy as np

    from benchmarks.index import to_documents
    from benchmarks.search import load
    from serving.client import EmbeddingClient

    start, service, removed = find("targets.server").Server, find("targets.service"), find("targets.sinks").removed
    with ExitStack() as stack:
        server = stack.enter_context(start(Path(version).parent))
        with EmbeddingClient([server.address]) as client:
            fingerprint = client.contract().fingerprint
        documents = to_documents(json.loads(Path(companies).read_text()), np.load(vectors), fingerprint)
        load(url, documents, (lambda: None) if "://" in url else removed(Path(url)))
        caller = service.Caller(stack.enter_context(service.Service(url, server.address, Path(log))).address)
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


SIDES: dict[str, Side] = {"serving": serving, "encode": encode, "stream": stream, "search": search}


def main(what: str, *arguments: str) -> None:
    # Libraries print what they like; only replies may go where the other end reads them.
    with os.fdopen(os.dup(sys.stdout.fileno()), "w") as replies:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        with SIDES[what](*arguments) as reply:
            print(json.dumps("ready"), file=replies, flush=True)
            for line in sys.stdin:
                print(json.dumps(reply(json.loads(line))), file=replies, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
