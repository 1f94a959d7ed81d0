"""Hostile requests by the hundred thousand, over gRPC, REST and the search API: no process may die, answer with a fault
of its own, change, load or unload anything, or grow."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from benchmarks.hostile import search
from benchmarks.hostile.memory import GROWTH, resident_bytes
from benchmarks.measures.data import BUILD
from benchmarks.quality.reproduce import StepError
from benchmarks.serving import exported
from benchmarks.targets.service import Service
from benchmarks.targets.sinks import removed
from common.ports import free_port
from serving.embedded import EmbeddedServer

FOLDER = BUILD / "hostile"
COMPANIES = "examples/companies.jsonl"
REQUESTS, SEED, THREADS = 100_000, 2021, 4
TOLD = 20  # faults


def run(data: Path, requests: int = REQUESTS, seed: int = SEED) -> dict:
    FOLDER.mkdir(parents=True, exist_ok=True)
    version = exported()
    with ExitStack() as stack:
        flags = ("--model_base_path", str(version.parent), "--rest_api_port", str(free_port()))
        server = stack.enter_context(EmbeddedServer(*flags))
        index = filled(server.address)
        service = stack.enter_context(Service(str(index), server.address, FOLDER / "search.log"))
        share = requests // 3
        return {
            "search API": _search(service, share, seed),
            "gRPC and REST": _serving(server, version, requests - share, seed),
        }


def filled(address: str) -> Path:
    """An index of the example companies."""
    index = FOLDER / "index"
    removed(index)()
    words = ["--input", COMPANIES, "--serving", address, "--index", str(index)]
    code = subprocess.run([sys.executable, "-m", "pipelines.encode", "--runner=DirectRunner", *words]).returncode
    if code:
        raise StepError(f"the examples could not be encoded into {index}, for the reason above (exit code {code})")
    return index


def _search(service: Service, count: int, seed: int) -> dict:
    port, pid = service.address[1], service.pid
    reports: list[search.Report] = []
    memory: list[int] = []
    for part, of_it in enumerate((count // 5, count - count // 5)):
        seeds = [seed + THREADS * part + number for number in range(THREADS)]
        with ThreadPoolExecutor(THREADS) as pool:
            reports += pool.map(partial(search.attack, port, count=-(-of_it // THREADS)), seeds)
        memory.append(resident_bytes(pid))
    faults = [fault for report in reports for fault in report.faults]
    responses = sum((report.statuses for report in reports), Counter[int]())
    sent = sum(report.kinds.total() for report in reports)
    return _row(sent, faults, memory, responses, service.alive())


def _serving(server: EmbeddedServer, version: Path, count: int, seed: int) -> dict:
    import common.runtime  # noqa: F401  (no other benchmark is to wait for TensorFlow)
    from benchmarks.hostile import serving
    from benchmarks.hostile.grpc_requests import Surroundings

    victim = FOLDER / "victim" / "7"
    victim.mkdir(parents=True, exist_ok=True)
    (victim / "letters.txt").write_text("kept")
    around = Surroundings(str(version.parent.resolve()), str(victim.parent.resolve()))
    target = serving.Target(server.address, f"http://127.0.0.1:{server.rest_port}", server.process.pid, around)
    found = serving.attack(target, count, seed, THREADS)
    responses = sum((Counter({response: number}) for (_, response), number in found.responses.items()), Counter[str]())
    return _row(count, found.faults, found.memory, responses, server.process.poll() is None)


def _row(sent: int, faults: list[str], memory: list[int], responses: Counter, alive: bool) -> dict:
    for fault in faults[:TOLD]:
        print(fault, file=sys.stderr)
    met = alive and not faults and memory[1] - memory[0] <= GROWTH
    return {
        "requests": f"{sent:,}",
        "faults": len(faults),
        "alive": "yes" if alive else "no",
        "MB after a fifth": round(memory[0] / 1e6),
        "MB at the end": round(memory[1] / 1e6),
        "answers": ", ".join(f"{response}: {number:,}" for response, number in responses.most_common()),
        "bar": f"no fault, alive, + {GROWTH / 1e6:.0f} MB at most",
        "met": "yes" if met else "no",
    }
