"""Versions published and rolled back at random moments of their loading, while clients ask: nobody may notice.

Each round publishes a version and withdraws it again, a random time later: mostly while it is still being loaded.
Every request is held against what was withdrawn when it was sent.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import grpc
import numpy as np
from tqdm import tqdm

from benchmarks.measures.data import BUILD
from benchmarks.quality.loop import step
from benchmarks.serving import exported
from model.contract import MODEL_NAME
from model.training.config import BASE_ENCODER, MAX_TOKENS
from serving import wire_pb2 as wire
from serving.embedded import EmbeddedServer
from serving.endpoint.connection import METHOD
from serving.endpoint.messages import predict_request
from serving.endpoint.withdrawal import AVAILABLE, version_states, wait_until_gone
from serving.publish import rollback
from serving.storage.base import FACTS_FILE, WITHDRAWN, Base
from serving.storage.open import open_base

FOLDER = BUILD / "rollback"
ROUNDS, SEED, CLIENTS = 50, 5, 4
PAUSE = 0.05  # seconds between two requests of a client
LATE = 1.3  # times the usual load, at most, before a version is withdrawn: some are live by then
TEXTS = ("Banking. Lends to small firms.", "Brewing. Sells craft lager to pubs and shops across northern Europe. " * 6)


@dataclass(frozen=True)
class Reply:
    """One response to a client: when, how fast, by which version."""

    sent: float
    seconds: float
    version: int
    fingerprint: str


@dataclass(frozen=True)
class Withdrawal:
    """A version that was rolled back, and when servers had let go of it."""

    version: int
    at: float  # when its folder was out of sight
    gone: float  # when the server had let go of it
    was_live: bool  # by the server's own account, right after the withdrawal


class Clients:
    """Threads that ask all the time, and note who answered."""

    def __init__(self, address: str):
        self.replies: list[Reply] = []
        self.failures: list[str] = []
        self._address, self._stopping = address, threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=[TEXTS[number % 2]]) for number in range(CLIENTS)]

    def _ask(self, text: str) -> None:
        request = predict_request(MODEL_NAME, "serving_default", [text.encode()])
        with grpc.insecure_channel(self._address) as channel:
            encode, decode = wire.PredictRequest.SerializeToString, wire.PredictResponse.FromString
            call = channel.unary_unary(METHOD, request_serializer=encode, response_deserializer=decode)
            while not self._stopping.wait(PAUSE):
                sent = time.monotonic()
                try:
                    response = call(request, timeout=60)
                except grpc.RpcError as error:
                    self.failures.append(f"{error.code().name}: {error.details()}")
                    continue
                name = response.outputs["model"].string_val[0].decode()
                version = response.model_spec.version.value
                self.replies.append(Reply(sent, time.monotonic() - sent, version, name))

    def __enter__(self) -> Clients:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()


def run(data: Path, rounds: int = ROUNDS) -> dict:
    return measure(exported(), another(), FOLDER / "models", rounds)


def another() -> Path:
    """The same encoder under another fingerprint, which the text recipe is part of."""
    version = FOLDER / "another" / "1"
    if not version.exists():
        words = ("--max_tokens", MAX_TOKENS, "--recipe", "{name}. {description}", "--to", version.parent)
        step("model.export", "--model", BASE_ENCODER, *words)
    return version


def measure(good: Path, bad: Path, folder: Path, rounds: int, *flags: str) -> dict:
    """The good version is live; the bad one is what is published and withdrawn."""
    shutil.rmtree(folder, ignore_errors=True)
    base = open_base(str(folder))
    base.add(good)
    with EmbeddedServer("--model_base_path", str(folder), *flags) as server, Clients(server.address) as clients:
        usual = publish(base, good, server)
        calm, said = time.monotonic(), len(server.log)  # what it says of the machine as it starts is no alarm
        withdrawals = [one_round(base, bad, server, usual, random.Random(SEED + number)) for number in bar(rounds)]
        ended = time.monotonic()
    load = {"load beside a live version, s": round(usual, 1), "published and withdrawn": rounds}
    replies = [reply for reply in clients.replies if calm <= reply.sent <= ended]
    fingerprints = fingerprint(good), fingerprint(bad)
    figures = verdict(replies, clients.failures, withdrawals, fingerprints, server.log[said:])
    return {"publish, roll back": load | figures}


def fingerprint(version: Path) -> str:
    return str(json.loads((version / FACTS_FILE).read_text())["contract"]["fingerprint"])


def bar(rounds: int) -> tqdm:
    return tqdm(range(rounds), desc="rounds", unit="round", disable=None)


def publish(base: Base, version: Path, server: EmbeddedServer) -> float:
    """Seconds until it was live."""
    since, began = len(server.log), time.monotonic()
    number = base.add(version)
    server.wait_for(rf"version {number} \(.*is served", since)
    return time.monotonic() - began


def one_round(base: Base, version: Path, server: EmbeddedServer, usual: float, chance: random.Random) -> Withdrawal:
    number = base.add(version)
    time.sleep(chance.uniform(0, LATE * usual))
    rollback(base)
    at = time.monotonic()
    with grpc.insecure_channel(server.address) as channel:
        was_live = version_states(channel, server.address, MODEL_NAME).get(number) == AVAILABLE
    wait_until_gone([server.address], MODEL_NAME, [number])
    gone = time.monotonic()
    # Its name alone is kept, which the next number is counted from.
    withdrawn = Path(base.path) / f"{number}{WITHDRAWN}"
    shutil.rmtree(withdrawn)
    withdrawn.mkdir()
    return Withdrawal(number, at, gone, was_live)


def verdict(
    replies: list[Reply], failures: list[str], withdrawals: list[Withdrawal], fingerprints: tuple[str, str], log: str
) -> dict:
    """What must be 0, and how long it took; `fingerprints` of the good version and of the withdrawn ones."""
    gone = {withdrawal.version: withdrawal for withdrawal in withdrawals}
    late = [reply for reply in replies if reply.version in gone and reply.sent > gone[reply.version].gone]
    never_live = [reply for reply in replies if reply.version in gone and not gone[reply.version].was_live]
    wrong = [reply for reply in replies if reply.fingerprint != fingerprints[reply.version in gone]]
    errors = [line for line in log.splitlines() if re.search(r" [EW] ", line)]
    loading = [withdrawal for withdrawal in withdrawals if not withdrawal.was_live]
    bad = len(failures) + len(late) + len(never_live) + len(wrong) + len(errors)
    seconds = [reply.seconds for reply in replies]
    return {
        "withdrawn while loading": len(loading),
        "withdrawn when live": len(withdrawals) - len(loading),
        "requests": len(replies),
        "failed": len(failures),
        "answered by a version after its withdrawal": len(late),
        "answered by a version that was withdrawn while loading": len(never_live),
        "answered under a fingerprint of another version": len(wrong),
        "alarms in the log": len(errors),
        "median, p99, most ms": " ".join(f"{1e3 * value:.0f}" for value in np.quantile(seconds, [0.5, 0.99, 1])),
        "let go of while loading, s, at most": longest(loading),
        "let go of when live, s, at most": longest([withdrawal for withdrawal in withdrawals if withdrawal.was_live]),
        "bar": "0 of each",
        "met": "no" if bad else "yes",
    }


def longest(withdrawals: list[Withdrawal]) -> float:
    return round(max((withdrawal.gone - withdrawal.at for withdrawal in withdrawals), default=0.0), 1)
