"""The images put to work together, in a network that holds nothing but them: what is not in an image cannot be fetched.

A model is published and served, the pipeline image encodes the examples on Prism, once by itself and once with its
workers in a container that Beam's own boot program started, and search answers."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from common.command import exit_code
from infra.images.dockerfile import dockerfiles
from infra.images.local.buildah import buildah, folder, has
from infra.images.local.container import Container
from infra.local.prism import prism_binary
from infra.local.processes import ROOT, NotStarted, Unavailable

NOBODY = 65534
COMPANIES = 389
SECONDS = 300.0
ENCODE = ("python", "-m", "pipelines.encode")
TRAIN = ["--encoder", "scratch:L1-H32", "--max_tokens", "32", "--epochs", "1", "--batch_size", "64"]
PROBE = """
import errno, os
assert os.getuid() == {user}, os.getuid()
for path in ("/probe", "/opt/pause/probe", "/etc/probe"):
    try:
        open(path, "w")
    except OSError as error:
        assert error.errno == errno.EROFS, error
    else:
        raise AssertionError(path + " was written")
"""
BOOTED = "retrieval_token"  # of what boot says of the job that a worker is for
SIOCSIFFLAGS, UP = 0x8914, 0x49  # up, loopback, running


def megabytes(image: str) -> float:
    """Of all its files; those of the base are among them."""
    container = buildah("from", "--pull-never", image)
    try:
        said = subprocess.run(["du", "-sxm", buildah("mount", container)], capture_output=True, text=True, check=True)
    finally:
        buildah("rm", container)
    return float(said.stdout.split()[0])


def run() -> None:
    """In a network of its own, with this one's loopback name and nothing else."""
    missing = [name for name in dockerfiles(ROOT) if not has(name)]
    if missing:
        raise Unavailable(f"{', '.join(missing)} is not built; `python -m infra.images build` does that")
    export()
    prism_binary()
    ended = subprocess.run(["unshare", "--net", sys.executable, "-m", "infra.images.local.trial"], cwd=ROOT)
    if ended.returncode:
        raise NotStarted("the trial failed; see above")


def export() -> Path:
    """A small model of the examples, made once: what it finds is no matter here."""
    base = folder() / "exported" / "pause"
    if not base.exists():
        model, data = folder() / "model", ["--pairs", "examples/pairs.tsv", "--companies", "examples/companies.jsonl"]
        for words in (["model.train", *data, *TRAIN, "--out", str(model)],
                      ["model.export", "--model", str(model), "--to", str(base)]):  # fmt: skip
            subprocess.run([sys.executable, "-m", *words], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return base


def _new(name: str) -> Path:
    path = folder() / "trial" / name
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    os.chown(path, NOBODY, NOBODY)
    return path


def trial() -> None:
    flags = struct.pack("16sh", b"lo", UP)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, flags)
    models, data = _new("models"), _new("data")
    shutil.copy(prism_binary(), data / "prism")
    os.chown(data / "prism", NOBODY, NOBODY)  # Beam makes it executable, whether it is or not
    publish(models)
    with Container("pause-serving", mounts={"/models": models}) as serving:
        serving.healthy(SECONDS)
        tell("pause-serving", "is healthy: a version answers")
        encode(data)
        encode_by_workers(data)
        search(data)


def tell(image: str, claim: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {image:<15} {claim}", flush=True)


def publish(models: Path) -> None:
    mounts = {"/setup": ROOT / "infra" / "compose", "/from": folder() / "exported", "/models": models}
    command = ["sh", "/setup/publish.sh", "/from/pause", "/models/pause"]
    for expected in ("/models/pause/1", "published already"):
        with Container("pause-model", command, mounts, writable=["/models"]) as job:
            said = job.wait(SECONDS)
        if expected not in said:
            raise NotStarted(f"pause-model did not say {expected!r}: {said[-300:]}")
    tell("pause-model", "proves and publishes a model, and not twice")


def encode(data: Path) -> None:
    mounts = {"/data": data, "/companies": ROOT / "examples"}
    flags = ["--runner=PrismRunner", "--prism_location=/data/prism", "--environment_type=LOOPBACK",
             "--input=/companies/companies.jsonl", "--serving=localhost:8500", "--index=/data/index"]  # fmt: skip
    with Container("pause-pipeline", flags, mounts, ENCODE, writable=["/data"]) as job:
        said = job.wait(SECONDS)
    tell("pause-pipeline", f"pipelines.encode on Prism: {_summary(said)}")
    launch = ["sh", "-c", 'exec python "$FLEX_TEMPLATE_PYTHON_PY_FILE" --help']
    with Container("pause-pipeline", launch, entrypoint=()) as job:
        _require(job.wait(SECONDS), "usage: python -m pipelines.encode")
    tell("pause-pipeline", "what a template's launcher is told to run starts")


def encode_by_workers(data: Path) -> None:
    """As Flink, or a cluster's worker pool, has it: the image's own entry point starts what Beam asks for."""
    mounts = {"/data": data, "/companies": ROOT / "examples"}
    flags = ["--runner=PrismRunner", "--prism_location=/data/prism", "--environment_type=EXTERNAL",
             "--environment_config=localhost:50000",
             "--input=/companies/companies.jsonl", "--serving=localhost:8500", "--index=/data/second"]  # fmt: skip
    with Container("pause-pipeline", ["--worker_pool"], mounts, writable=["/data"]) as workers:
        _listening(50000)
        _probe(workers, NOBODY)
        workers.healthy(SECONDS)
        with Container("pause-pipeline", flags, mounts, ENCODE, writable=["/data"]) as job:
            said = job.wait(SECONDS)
        _require(workers.said, BOOTED)
    tell("pause-pipeline", f"workers started by boot: {_summary(said)}")


def search(data: Path) -> None:
    flags = ["--host=0.0.0.0", "--index=/data/index", "--serving=localhost:8500"]
    with Container("pause-search", flags, {"/data": data}, writable=["/data"]) as service:
        service.healthy(SECONDS)
        _probe(service, NOBODY)
        ready = _ask("/readyz")
        body = json.dumps({"text": "low-cost airline in Europe", "k": 3}).encode()
        hits = _ask("/v1/search", body)["hits"]
        if len(hits) != 3:
            raise NotStarted(f"pause-search answered {hits}")
    tell("pause-search", f"is healthy and ready ({ready}), and answers: {[hit['company']['name'] for hit in hits]}")


def _summary(said: str) -> str:
    """The line that adds up; all companies of the examples must be in it."""
    found = next((line for line in said.splitlines() if "; index " in line), "")
    if str(COMPANIES) not in found:
        raise NotStarted(f"not all of {COMPANIES} companies were encoded: {said[-1000:]}")
    return found


def _ask(path: str, body: bytes | None = None) -> Any:
    request = urllib.request.Request(f"http://127.0.0.1:8000{path}", body, {"Content-Type": "application/json"})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as answer:
        return json.load(answer)


def _probe(container: Container, user: int) -> None:
    run = container.execute("python", "-c", PROBE.format(user=user))
    if run.returncode:
        raise NotStarted(f"{container.image} is not as it should be: {run.stderr[-300:]}")


def _listening(port: int) -> None:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.5)
    raise NotStarted(f"nobody listens on port {port}")


def _require(said: str, words: str) -> None:
    if words not in said:
        raise NotStarted(f"{words!r} was not said: {said[-1000:]}")


if __name__ == "__main__":
    sys.exit(exit_code(trial))
