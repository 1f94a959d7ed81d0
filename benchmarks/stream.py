"""A stream at half of what the encoder manages: how long from a message's publishing until its company can be found."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
from tqdm import tqdm

from benchmarks.measures.data import BUILD, need
from benchmarks.serving import draw, exported
from benchmarks.targets.cluster import Cluster
from benchmarks.targets.server import Server
from common.errors import CommandError, InputError
from index.base import Index
from index.document import Filters
from index.open import open_index
from infra.local.pubsub import PubSub
from serving.client import EmbeddingClient

FOLDER = BUILD / "stream"
MESSAGES, CALIBRATION, CALIBRATIONS = 1000, 256, 5
WARM_UP = 300  # messages until the server has compiled the shapes of small batches
SHARE = 0.5  # of the encoder's capacity
PROJECT = "pause-benchmark"
LOOK = 0.1  # seconds between looks at the index
PATIENCE = 120.0  # seconds
P50, P99 = 2.0, 5.0
LANCE, ELASTIC = "LanceDB", "Elasticsearch"


class StreamError(InputError):
    """The stream ended, or what was published never came to be found."""


def run(data: Path, messages: int = MESSAGES) -> dict:
    (listed,) = need(data, "companies/listed.jsonl.gz")
    texts = draw(listed, WARM_UP + messages)
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    with ExitStack() as stack:
        server = stack.enter_context(Server(exported().parent))
        cluster = stack.enter_context(Cluster())
        rate = SHARE * capacity(server.address, texts)
        places = {LANCE: str(FOLDER / "index"), ELASTIC: f"{cluster.address}/stream"}
        return {name: streamed(server.address, url, texts, rate) for name, url in places.items()}


def capacity(address: str, texts: list[str]) -> float:
    """Texts a second, the best of some times: the first has shapes compiled on its way."""
    taken = []
    with EmbeddingClient([address]) as client:
        for _ in range(CALIBRATIONS):
            began = time.monotonic()
            client.embed(texts[:CALIBRATION])
            taken.append(time.monotonic() - began)
    return min(CALIBRATION, len(texts)) / min(taken)


def streamed(address: str, url: str, texts: list[str], rate: float) -> dict:
    with (
        PubSub() as fake,
        topic(fake.address) as (publish, subscription),
        job(fake.address, subscription, address, url) as running,
    ):
        index = opened(url, running)
        follow(index, publish, texts[:WARM_UP], rate, 0, running)
        seconds = follow(index, publish, texts[WARM_UP:], rate, WARM_UP, running)
    p50, p99 = (float(np.percentile(seconds, share)) for share in (50, 99))
    return {
        "messages": len(seconds),
        "messages/s": round(rate, 1),
        "p50 s": round(p50, 2),
        "p99 s": round(p99, 2),
        "longest s": round(max(seconds), 2),
        "bar": f"p50 <= {P50:g} s, p99 <= {P99:g} s",
        "met": "yes" if p50 <= P50 and p99 <= P99 else "no",
    }


@contextmanager
def topic(address: str) -> Iterator[tuple[Callable[[bytes], object], str]]:
    """How to publish, and the name of the subscription that gets it."""
    os.environ["PUBSUB_EMULATOR_HOST"] = address
    import google.cloud.pubsub as pubsub

    publisher = pubsub.PublisherClient(pubsub.types.BatchSettings(max_messages=1))
    with pubsub.SubscriberClient() as subscriber:
        name = publisher.topic_path(PROJECT, "companies")
        subscription = subscriber.subscription_path(PROJECT, "companies")
        publisher.create_topic(name=name)
        subscriber.create_subscription(name=subscription, topic=name)
        yield lambda data: publisher.publish(name, data), subscription
    publisher.stop()
    del os.environ["PUBSUB_EMULATOR_HOST"]


@contextmanager
def job(fake: str, subscription: str, serving: str, index: str) -> Iterator[subprocess.Popen]:
    flags = ["--runner=DirectRunner", "--subscription", subscription, "--serving", serving, "--index", index]
    command = [sys.executable, "-m", "pipelines.encode", *flags, "--dead_letters", str(FOLDER / "dead_letters")]
    with (FOLDER / "job.log").open("w") as log:
        running = subprocess.Popen(command, env={**os.environ, "PUBSUB_EMULATOR_HOST": fake}, stdout=log, stderr=log)
        try:
            yield running
        finally:
            running.send_signal(signal.SIGTERM)
            running.wait()
    if running.returncode:
        raise StreamError(f"the stream ended with {running.returncode}; {FOLDER / 'job.log'} says why")


def opened(url: str, running: subprocess.Popen) -> Index:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and running.poll() is None:
        try:
            return open_index(url)
        except CommandError:
            time.sleep(LOOK)
    raise StreamError(f"the stream made no index at {url}; {FOLDER / 'job.log'} says why")


def follow(
    index: Index,
    publish: Callable[[bytes], object],
    texts: list[str],
    rate: float,
    first: int,
    running: subprocess.Popen,
) -> list[float]:
    """Publishes at that rate and looks who can be found; seconds from one to the other, of every message.

    A message's tag is its own, its sector is shared by those of one second: a look asks for the missing ones only.
    """
    began = time.monotonic()
    published: dict[str, float] = {}
    found: dict[str, float] = {}
    sectors: dict[str, str] = {}
    with tqdm(total=len(texts), desc="messages", unit="message", disable=None) as bar:
        while len(found) < len(texts):
            now = time.monotonic()
            while len(published) < len(texts) and now >= began + len(published) / rate:
                tag = f"m{first + len(published)}"
                sectors[tag] = f"second {first} {int(now - began)}"
                text = texts[len(published)]
                publish(json.dumps({"id": tag, "description": text, "sector": sectors[tag], "tags": [tag]}).encode())
                published[tag] = now
            missing = {sectors[tag] for tag in published if tag not in found}
            if missing:
                for tag, _ in index.facets(Filters(sector=tuple(sorted(missing))), top=len(texts))["tags"]:
                    if tag not in found:
                        found[tag] = time.monotonic() - published[tag]
                        bar.update()
            if running.poll() is not None or now > began + len(texts) / rate + PATIENCE:
                raise StreamError(
                    f"{len(texts) - len(found)} messages were not found; {FOLDER / 'job.log'} may say why"
                )
            time.sleep(LOOK)
    return list(found.values())
