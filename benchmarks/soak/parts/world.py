"""The real parts as processes of their own: Elasticsearch and the model's server behind proxies, Pub/Sub, both
pipelines and the search service.

The pipeline of messages runs on the DirectRunner, which acknowledges as it reads: it is ended gently, never killed.
The pipeline of files runs on Prism, and is killed.
"""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from elasticsearch import Elasticsearch as Client

from benchmarks.soak.parts.models import contract_of, exported
from benchmarks.soak.parts.part import Part, python, tied
from benchmarks.soak.parts.proxy import HttpProxy, TcpProxy
from common.errors import CommandError, InputError
from common.ports import free_port
from infra.local.elasticsearch import Elasticsearch
from infra.local.prism import Prism
from infra.local.pubsub import PubSub
from model.contract import Contract
from serving.storage.open import open_base

ALIAS, PROJECT = "soak", "pause-soak"
HEAP = "512m"
DISK_BYTES = 16 << 20  # for the dead letters of the pipeline of files
START_SECONDS, COMMAND_SECONDS = 180.0, 240.0


class WorldError(InputError):
    """A part did not start, or a command that must work did not."""


class World:
    """`plant` is the kind of a bug to be planted into both pipelines, or "" for none."""

    def __init__(self, folder: Path, seed: int, plant: str = "", elasticsearch: Elasticsearch | None = None):
        self.folder, self._plant, self._seed = folder, plant, seed
        self.input, self.letters = folder / "in", folder / "letters"
        self.small_disk = folder / "small-disk"
        self.has_small_disk = False
        self.notes: list[tuple[float, str]] = []  # what happened, for people
        self.owns_elasticsearch = elasticsearch is None
        self._given, self._stack = elasticsearch, ExitStack()
        self._prism: Prism | None = None
        self._over = threading.Event()

    # life

    def __enter__(self) -> World:
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with self._stack:
            if not self.owns_elasticsearch:
                for name in self.direct.indices.get(index=f"{ALIAS}*").body:
                    self.direct.indices.delete(index=name)

    def _start(self) -> None:
        for path in (self.input, self.letters, self.folder / "logs"):
            path.mkdir(parents=True, exist_ok=True)
        self.exports = exported(self.folder.parent / "soak-models")
        self.contracts: dict[str, Contract] = {}
        for version in self.exports:
            contract = contract_of(version)
            self.contracts[contract.fingerprint] = contract
        self.base = self.folder / "base"
        open_base(str(self.base)).add(self.exports[0])
        self._stack.callback(self._over.set)
        self._start_services()
        self._start_messages()
        self._mount()
        self.search_port = free_port()
        self.stream, self.watch = self._part("stream", self._stream_command), self._part("watch", self._watch_command)
        self.watch.after = self._end_prism
        self.search = self._part("search", self._search_command)
        self.parts = {part.name: part for part in (self.server, self.stream, self.watch, self.search)}
        self.must("index", "create", "--index", self.index_url, "--serving", self.serving)
        for part in (self.stream, self.watch, self.search):
            part.start()
            self._stack.callback(part.kill)
        self.wait_until(self.search_responds, "the search service")
        threading.Thread(target=self._supervise, name="supervisor", daemon=True).start()

    def _start_services(self) -> None:
        self.elasticsearch = self._given or self._stack.enter_context(Elasticsearch(heap=HEAP))
        self.direct = Client(self.elasticsearch.address, request_timeout=20, max_retries=0)
        self._stack.callback(self.direct.close)
        self.http = HttpProxy(self.elasticsearch.address, self._seed)
        self._stack.callback(self.http.stop)
        self.index_url = f"{self.http.address}/{ALIAS}"
        self.server_port = free_port()
        self.server = self._part("server", self._server_command)
        self.server.start()
        self._stack.callback(self.server.kill)
        self.tcp = TcpProxy(lambda: ("127.0.0.1", self.server_port), self._seed)
        self._stack.callback(self.tcp.stop)
        self.serving = self.tcp.address
        self.wait_until(self.server_responds, "the model's server")

    def _start_messages(self) -> None:
        self.pubsub = self._stack.enter_context(PubSub())
        os.environ["PUBSUB_EMULATOR_HOST"] = self.pubsub.address
        self._stack.callback(lambda: os.environ.pop("PUBSUB_EMULATOR_HOST", None))
        import google.cloud.pubsub as pubsub

        self.publisher = pubsub.PublisherClient(pubsub.types.BatchSettings(max_messages=1))
        self._stack.callback(self.publisher.stop)
        self.subscriber = self._stack.enter_context(pubsub.SubscriberClient())
        self.topic = self.publisher.topic_path(PROJECT, "companies")
        self.publisher.create_topic(name=self.topic)
        self.subscription, self.audit = (self.subscriber.subscription_path(PROJECT, one) for one in ("stream", "audit"))
        for name in (self.subscription, self.audit):
            self.subscriber.create_subscription(name=name, topic=self.topic)

    def publish(self, data: bytes) -> str:
        return str(self.publisher.publish(self.topic, data).result(timeout=60))

    def _mount(self) -> None:
        """A disk that can be filled; only root may mount one."""
        self.small_disk.mkdir(exist_ok=True)
        command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(self.small_disk)]
        self.has_small_disk = subprocess.run(command, capture_output=True).returncode == 0
        if self.has_small_disk:
            self._stack.callback(subprocess.run, ["umount", "-l", str(self.small_disk)], capture_output=True)

    # the commands of the parts

    def _part(self, name: str, command: Callable[[], list[str]]) -> Part:
        return Part(name, command, self.folder / "logs" / f"{name}.log", dict(os.environ))

    def _server_command(self) -> list[str]:
        flags = ("--port", str(self.server_port), "--model_base_path", str(self.base), "--keep_versions", "2")
        return python("serving.server", *flags, "--xla_cpu_compilation_enabled=false")

    def _search_command(self) -> list[str]:
        flags = ("--index", self.index_url, "--serving", self.serving, "--port", str(self.search_port), "--rate", "0")
        return python("search", *flags)

    def _stream_command(self) -> list[str]:
        return self.encode(
            "--runner=DirectRunner", "--subscription", self.subscription, letters=self.letters / "stream"
        )

    def _watch_command(self) -> list[str]:
        self._prism = Prism()
        runner = ("--runner=PrismRunner", f"--job_endpoint={self._prism.address}", "--watch_interval=1")
        return self.encode(*runner, "--watch", f"{self.input}/*", letters=self.watch_letters)

    @property
    def watch_letters(self) -> Path:
        return (self.small_disk if self.has_small_disk else self.letters) / "watch"

    def encode(self, *flags: str, letters: Path) -> list[str]:
        where = ("--serving", self.serving, "--index", self.index_url, "--dead_letters", str(letters))
        if self._plant:
            return python("benchmarks.soak.parts.planted", self._plant, *flags, *where)
        return python("pipelines.encode", *flags, *where)

    def _end_prism(self) -> None:
        if self._prism:
            self._prism.stop()
            self._prism = None

    # what operators do

    def run(self, module: str, *words: str, seconds: float = COMMAND_SECONDS) -> tuple[int, str]:
        """A command to its end: its exit code and what it said last."""
        log = self.folder / "logs" / "operator.log"
        with log.open("ab") as out:
            out.write(f"--- {time.strftime('%H:%M:%S')} {module} {' '.join(words)}\n".encode())
            out.flush()
            start = out.tell()
            try:
                code = subprocess.run(tied(python(module, *words)), stdout=out, stderr=out, timeout=seconds).returncode
            except subprocess.TimeoutExpired:
                code = -1
        said = log.read_bytes()[start:].decode(errors="replace")
        return code, " | ".join(line for line in said.splitlines() if line.strip())[-600:]

    def must(self, module: str, *words: str, tries: int = 5) -> str:
        """As run, and again where it failed: the services it needs may be away."""
        for _ in range(tries):
            code, said = self.run(module, *words)
            if code == 0:
                return said
            self.note(f"{module} {' '.join(words)} ended with {code}: {said}")
            if self._over.wait(2):
                break
        raise WorldError(f"`python -m {module} {' '.join(words)}` failed {tries} times: {said}")

    def live_model(self) -> str:
        """The fingerprint of the index, by Elasticsearch's own account."""
        found = self.direct.indices.get_mapping(index=ALIAS).body
        (content,) = found.values()
        return str(content["mappings"]["_meta"]["model"])

    def note(self, what: str) -> None:
        self.notes.append((time.time(), what))

    # are they there

    def server_responds(self) -> bool:
        from serving.client import EmbeddingClient

        try:
            with EmbeddingClient([f"127.0.0.1:{self.server_port}"], deadline=2.0) as client:
                return bool(client.contract())
        except CommandError:
            return False

    def search_responds(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.search_port), timeout=1):
            return True
        return False

    def wait_until(self, ready: Callable[[], bool], what: str, seconds: float = START_SECONDS) -> None:
        deadline = time.monotonic() + seconds
        while not ready():
            if time.monotonic() > deadline:
                raise WorldError(f"{what} did not answer within {seconds:.0f} s; {self.folder / 'logs'} says why")
            time.sleep(0.2)

    def _supervise(self) -> None:
        while not self._over.wait(0.5):
            for part in self.parts.values():
                how = part.look()
                if how:
                    self.note(how)
