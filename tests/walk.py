"""The way of one record or one question through the code: all functions of ours that are called on it, in their order.

`python tests/walk.py record FLAGS...` runs the pipeline, from the moment a line is read until it is in the index;
`python tests/walk.py question INDEX HOST:PORT TEXT` asks a search service, from its request to its response. Of other
rooms only what the room itself calls is told: their insides are theirs.
"""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parents[1]
OURS = tuple(f"{ROOT}/{room}/" for room in ("common", "model", "serving", "index", "pipelines", "search"))
READ, WRITTEN = "_lines", ".write"
RESUMABLE = inspect.CO_COROUTINE | inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR
BESIDE = ("progress", "pending")  # called on a clock, or by Beam's look at a DoFn
RECORDER = "shown-lists"  # the thread that writes down what was shown, some seconds later

Call = tuple[str, str]  # file, function


def walk(what: str, *flags: str) -> list[Call]:
    """In a process of its own, whose threads are all watched."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    command = [sys.executable, __file__, what, *flags]
    done = subprocess.run(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, check=True, timeout=120)
    return [tuple(call) for call in json.loads(done.stdout.splitlines()[-1])]


def files_of(way: list[Call]) -> list[str]:
    """In order, each change of file one more. Which back end it is, and how many files that has, is behind the door of
    index/base.py."""
    named = ("index/base.py" if file.startswith(("index/lance/", "index/elastic/")) else file for file, _ in way)
    return [file for file, _ in groupby(named)]


def record(*flags: str) -> list[Call]:
    from pipelines import encode, pipeline  # imports are not a record's way

    assert pipeline
    with _watched("pipelines") as calls:
        code = encode.main(list(flags))
    assert code == 0
    first = [function for _, function in calls].index(READ)
    last = max(
        place for place, (file, name) in enumerate(calls) if file.startswith("index/") and name.endswith(WRITTEN)
    )
    return [call for call in calls[first : last + 1] if not any(word in call[1] for word in BESIDE)]


def question(url: str, address: str, text: str) -> list[Call]:
    from starlette.testclient import TestClient

    from index.open import open_index
    from search.app import create_app
    from search.settings import Settings
    from serving.client import EmbeddingClient

    with EmbeddingClient([address], deadline=5.0) as endpoint, _watched("search") as calls:
        app = create_app(open_index(url), endpoint, Settings(rate=0))
        with TestClient(app, base_url="http://localhost") as client:
            client.post("/v1/search", json={"text": "something else"})
            calls.clear()  # what is done once is not a question's way
            answered = client.post("/v1/search", json={"text": text})
            way = list(calls)
    assert answered.status_code == 200 and answered.json()["hits"], answered.text
    return way


@contextmanager
def _watched(room: str) -> Iterator[list[Call]]:
    """What is called of this room, and of others by this room."""
    calls: list[Call] = []
    resumed = set()  # frames, of coroutines and generators: going on with one is no call

    def note(frame, event, _) -> None:
        file = frame.f_code.co_filename
        if event != "call" or frame in resumed or not file.startswith(OURS):
            return
        if threading.current_thread().name == RECORDER:
            return
        if frame.f_code.co_flags & RESUMABLE:
            resumed.add(frame)
        caller = frame.f_back
        while caller and not caller.f_code.co_filename.startswith(OURS):
            caller = caller.f_back
        name = file.removeprefix(f"{ROOT}/")
        if name.startswith(f"{room}/") or (caller and f"{ROOT}/{room}/" in caller.f_code.co_filename):
            calls.append((name, frame.f_code.co_qualname))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


if __name__ == "__main__":
    what, *given = sys.argv[1:]
    sys.stdout.write(f"{json.dumps({'record': record, 'question': question}[what](*given))}\n")
