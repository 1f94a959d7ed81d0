"""Latency of the first request after a version is loaded against later ones: after a start, and after a swap."""

from __future__ import annotations

import shutil
import statistics
import time
from pathlib import Path

from tqdm import tqdm

from benchmarks.measures.senders import seconds
from benchmarks.targets.server import Server, add_version
from serving.client import EmbeddingClient

# Shapes that are asked for often are compiled meanwhile, which slows the requests beside it down: held against those,
# any first request would look fast.
SETTLE_SECONDS = 20.0
LATER = 15  # requests after that, whose median the first is held against
SIZES = (1, 32)  # texts of a request
Milliseconds = tuple[float, float]  # of the first request, and the median of the later ones


def measure(version: Path, texts: list[str], rounds: int, folder: Path) -> dict[str, list[Milliseconds]]:
    """By what was loaded and asked, one figure a round: only one request is the first, so each has its own load."""
    found: dict[str, list[Milliseconds]] = {title(load, size): [] for load in ("start", "swap") for size in SIZES}
    orders = [order for _ in range(rounds) for order in (SIZES, SIZES[::-1])]
    for number, (started, swapped) in enumerate(tqdm(orders, desc="loads", unit="server", disable=None)):
        base = folder / "loads"
        shutil.rmtree(base, ignore_errors=True)
        base.mkdir(parents=True)
        add_version(version, base, 1)
        turn = number * max(SIZES) % len(texts)
        some = texts[turn:] + texts[:turn]  # others each time
        with Server(base) as server, EmbeddingClient([server.address]) as client:
            client.contract()  # connects: the model's first request is looked for, not the network's
            found[title("start", started)].append(first_and_later(client, some[:started]))
            server.swap()
            found[title("swap", swapped)].append(first_and_later(client, some[:swapped]))
    return found


def title(load: str, size: int) -> str:
    return f"first request after a {load}, {size} text{'s' if size > 1 else ''}"


def first_and_later(client: EmbeddingClient, texts: list[str]) -> Milliseconds:
    first = seconds(lambda: client.embed(texts))
    settled = time.monotonic() + SETTLE_SECONDS
    while time.monotonic() < settled:
        client.embed(texts)
    later = [seconds(lambda: client.embed(texts)) for _ in range(LATER)]
    return 1e3 * first, 1e3 * statistics.median(later)
