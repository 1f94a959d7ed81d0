"""Versions that come, go and fail under a server that runs, in a process of its own, while clients ask."""

import json
import random
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import httpx
import numpy as np
import pytest
import tensorflow as tf
from embedded import EmbeddedServer
from tensorflow_serving.apis import (
    get_model_status_pb2,
    model_management_pb2,
    model_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from serving.client import EmbeddingClient
from serving.publish import rollback
from serving.server.models.loaded import LoadedModel
from serving.storage.open import open_base

TEXTS = ["bank", "bank loans credit", "", "beer ale lager hops malt " * 9, "car 🚗 engine", "savings", "wheels motor"]
FACTS, DATA = "assets.extra/pause.json", "variables/variables.data-00000-of-00001"
UNCOMPILED = "--xla_cpu_compilation_enabled=false"  # loads in a second
MB = 2**20
SOON = 60  # seconds
PAUSE = 0.03  # seconds between two requests of a thread: two cores also have to load versions meanwhile


def request_for(texts, name="pause", **version) -> predict_pb2.PredictRequest:
    request = predict_pb2.PredictRequest(model_spec=model_pb2.ModelSpec(name=name, **version))
    request.inputs["text"].CopyFrom(tf.make_tensor_proto(texts, tf.string))
    return request


@pytest.fixture(scope="module")
def known(exports) -> dict[str, np.ndarray]:
    """What each fingerprint's model makes of TEXTS, found out without a server."""
    models = [LoadedModel(path) for path in exports]
    vectors = {model.fingerprint: model.encode([text.encode() for text in TEXTS]) for model in models}
    assert len(vectors) == 3
    for one in range(3):
        a, b = list(vectors.values())[one], list(vectors.values())[one - 1]
        assert (np.abs(a - b).max(axis=1) > 1e-3).all()  # every text tells the models apart
    return vectors


@pytest.fixture(scope="module")
def fingerprints(known) -> list[str]:
    return list(known)


class Load:
    """Threads that ask all the time, the even ones through TensorFlow Serving's stubs, the odd ones through our
    client, and compare every vector with what the model of its fingerprint makes of the text."""

    def __init__(self, server: EmbeddedServer, known: dict[str, np.ndarray], threads: int):
        self._server, self._known = server, known
        self.requests = [0] * threads
        self.failures: list[str] = []
        self.carried: set[tuple[int, str]] = set()  # version and fingerprint of the stubs' responses
        self.fingerprints: set[str] = set()  # of the client's
        self._begun: dict[int, float] = {}  # version -> when the last request that it answered was sent
        self._heard = threading.Condition()
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._ask, args=[number, self._by_client if number % 2 else self._by_stub])
            for number in range(threads)
        ]

    @property
    def versions(self) -> set[int]:
        with self._heard:
            return set(self._begun)

    def wait_for(self, version: int, since: float = 0.0) -> None:
        """Until this version has answered a request that was sent since then."""
        with self._heard:
            answered = self._heard.wait_for(lambda: self._begun.get(version, -1) >= since, SOON)
        assert answered, f"version {version} answers nothing; {self.failures[:3]}\n{self._server.log[-2000:]}"

    def _ask(self, number: int, ask) -> None:
        chance = random.Random(number)
        with grpc.insecure_channel(self._server.address) as channel, EmbeddingClient([self._server.address]) as client:
            stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
            while not self._stopping.wait(PAUSE):
                places = chance.sample(range(len(TEXTS)), chance.randint(1, len(TEXTS)))
                try:
                    vectors, names = ask(stub, client, [TEXTS[place] for place in places])
                    self._compare(places, vectors, names)
                except Exception as error:  # whatever it is, the request failed
                    self.failures.append(repr(error))
                self.requests[number] += 1

    def _compare(self, places: list[int], vectors: np.ndarray, names: list[str]) -> None:
        expected = np.stack([self._known[name][place] for name, place in zip(names, places, strict=True)])
        if not np.abs(vectors - expected).max() < 1e-5:
            self.failures.append(f"vectors of {set(names)} are off by {np.abs(vectors - expected).max()}")

    def _by_stub(self, stub, _, texts):
        began = time.monotonic()
        response = stub.Predict(request_for(texts), timeout=SOON)
        version = response.model_spec.version.value
        names = [name.decode() for name in response.outputs["model"].string_val]
        with self._heard:
            self.carried.update((version, name) for name in names)
            self._begun[version] = max(began, self._begun.get(version, 0.0))
            self._heard.notify_all()
        return tf.make_ndarray(response.outputs["embedding"]), names

    def _by_client(self, _, client, texts):
        vectors, names = client.embed(texts)
        self.fingerprints.update(names)
        return vectors, names

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stopping.set()
        for thread in self._threads:
            thread.join()


def swap(base, source: Path | None, load: Load) -> int:
    """Publishes, or rolls back where there is nothing to publish, and waits until that version answers."""
    since = time.monotonic()
    number = base.add(source) if source else rollback(base)[1]
    load.wait_for(number, since)
    base.prune(3)
    return number


def test_twenty_swaps_and_three_rollbacks_fail_no_request_and_mix_no_vectors(exports, known, fingerprints, tmp_path):
    base = open_base(str(tmp_path / "pause"))
    published = {base.add(exports[0]): fingerprints[0]}
    answered, memory = [], {}
    with EmbeddedServer(tmp_path / "pause", UNCOMPILED) as server:
        with Load(server, known, threads=8) as load:
            load.wait_for(1)
            for step in range(1, 21):
                number = swap(base, exports[step % 3], load)
                published[number] = fingerprints[step % 3]
                answered.append(number)
                if step in (6, 12, 18):
                    answered.append(swap(base, None, load))
                memory[len(answered)] = server.memory()
        assert server.stop() == 0
    assert load.failures == []
    # the premises: each swap was seen, every model was asked, and there was a load worth the name
    assert answered[5:8] == [7, 6, 8] and len(answered) == 23 and len(set(answered)) == 20
    assert {name for _, name in load.carried} == load.fingerprints == set(fingerprints)
    assert min(load.requests) > 20 and sum(load.requests) > 1000
    # a version is one model
    assert load.carried == {(number, name) for number, name in published.items()}
    # A version that stays takes 15 MB, and 18 of them 270; the rest is what Python has not swept up yet.
    assert memory[23] - memory[5] < 120 * MB, {count: used // MB for count, used in memory.items()}


# versions that fail


def flip(path: Path) -> None:
    """Sixteen bytes in the middle, each to its opposite."""
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 16] = bytes(255 - byte for byte in data[middle : middle + 16])
    path.write_bytes(data)


def change_golden(path: Path) -> None:
    facts = json.loads(path.read_text())
    facts["golden"][2]["embedding"].reverse()
    path.write_text(json.dumps(facts))


FAULTS = {
    "a file is not there yet": (
        lambda path: (path / "variables/variables.index").unlink(),
        "variables.index is missing",
    ),
    "a file is half there": (
        lambda path: (path / DATA).write_bytes((path / DATA).read_bytes()[: (path / DATA).stat().st_size // 2]),
        f"{DATA} has .* bytes: still being copied",
    ),
    "corrupt weights": (lambda path: flip(path / DATA), "damaged"),
    "corrupt graph": (lambda path: flip(path / "saved_model.pb"), "damaged"),
    "wrong golden vectors": (lambda path: change_golden(path / FACTS), "the golden vectors are not reproduced"),
}


@pytest.fixture(scope="module")
def living(exports, tmp_path_factory):
    """A server whose versions come and go; each test leaves a good one as the newest."""
    folder = tmp_path_factory.mktemp("living")
    base = open_base(str(folder / "pause"))
    base.add(exports[0])
    flags = ("--max_num_load_retries=1", "--allow_reload_by_grpc", f"--reload_roots={folder}")
    with EmbeddedServer(Path(base.path), UNCOMPILED, *flags) as server:
        yield server, base


@pytest.fixture
def stubs(living):
    with grpc.insecure_channel(living[0].address) as channel:
        yield (
            prediction_service_pb2_grpc.PredictionServiceStub(channel),
            model_service_pb2_grpc.ModelServiceStub(channel),
        )


def status(models, version: int, name: str = "pause") -> tuple[str, int, str]:
    request = get_model_status_pb2.GetModelStatusRequest(model_spec=model_pb2.ModelSpec(name=name))
    for found in models.GetModelStatus(request).model_version_status:
        if found.version == version:
            state = get_model_status_pb2.ModelVersionStatus.State.Name(found.state)
            return state, found.status.error_code, found.status.error_message
    raise AssertionError(f"version {version} has no status")


def put_in_place(source: Path, base: Path, number: int, damage) -> Path:
    hidden = base / f".making-{number}"
    shutil.copytree(source, hidden)
    damage(hidden)
    return hidden.rename(base / str(number))


def repair(directory: Path, source: Path) -> None:
    """In place and file by file, as a copy that is started again does it."""
    for path in source.rglob("*"):
        target = directory / path.relative_to(source)
        if path.is_file() and (not target.exists() or target.read_bytes() != path.read_bytes()):
            shutil.copy(path, target)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_version_is_reported_and_never_served_until_it_is_repaired(
    living, stubs, exports, known, fingerprints, fault
):
    server, base = living
    _, models = stubs
    damage, words = FAULTS[fault]
    good = base.versions()[-1]
    number, source, began = good + 1, good % 3, len(server.log)
    with Load(server, known, threads=2) as load:
        directory = put_in_place(exports[source], Path(base.path), number, damage)
        server.wait_for(rf"pause version {number} is not served \(attempt 1\): .*{words}", began)
        server.wait_for(rf"pause version {number} is not served \(attempt 2\): .*{words}", began)  # the one retry
        state, code, _ = status(models, number)
        assert (state, code) == ("END", grpc.StatusCode.FAILED_PRECONDITION.value[0])
        load.wait_for(good, since=time.monotonic())
        assert load.versions == {good} and status(models, good) == ("AVAILABLE", 0, "")
        repair(directory, exports[source])
        load.wait_for(number)
    assert load.failures == []
    assert load.carried == {(good, fingerprints[source - 1]), (number, fingerprints[source])}
    assert status(models, number) == ("AVAILABLE", 0, "") and server.process.poll() is None


def test_on_a_cold_start_the_next_older_version_stands_in_for_a_corrupt_one(exports, fingerprints, tmp_path):
    base = tmp_path / "pause"
    shutil.copytree(exports[0], base / "1")
    put_in_place(exports[1], base, 2, lambda path: flip(path / "saved_model.pb"))
    with EmbeddedServer(base, UNCOMPILED) as server, grpc.insecure_channel(server.address) as channel:
        response = prediction_service_pb2_grpc.PredictionServiceStub(channel).Predict(request_for(["bank"]))
        assert response.model_spec.version.value == 1
        assert response.outputs["model"].string_val[0].decode() == fingerprints[0]
        assert status(model_service_pb2_grpc.ModelServiceStub(channel), 2)[0] == "END"
        assert "pause version 2 is not served" in server.log


# stopping and starting


def queued(server: EmbeddedServer) -> int:
    page = httpx.get(f"{server.rest}/monitoring/prometheus/metrics", trust_env=False).text
    [line] = [line for line in page.splitlines() if line.startswith("pause_queue_texts ")]
    return int(float(line.split()[1]))


def test_sigterm_lets_requests_finish_and_leaves_with_0(exports, known, fingerprints, tmp_path):
    shutil.copytree(exports[0], tmp_path / "pause" / "1")
    # Texts wait two seconds for company, so that they are certainly under way when the signal comes.
    (tmp_path / "batching.config").write_text("batch_timeout_micros { value: 2000000 }")
    flags = [UNCOMPILED, f"--batching_parameters_file={tmp_path / 'batching.config'}"]
    with EmbeddedServer(tmp_path / "pause", *flags) as server, grpc.insecure_channel(server.address) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        with ThreadPoolExecutor(1) as pool:
            body = {"instances": [TEXTS[0]]}
            url = f"{server.rest}/v1/models/pause:predict"
            rest = pool.submit(httpx.post, url, json=body, timeout=SOON, trust_env=False)
            calls = [stub.Predict.future(request_for([text]), timeout=SOON) for text in TEXTS]
            deadline = time.monotonic() + SOON
            while queued(server) < len(TEXTS) + 1:
                assert time.monotonic() < deadline
            assert not any(call.done() for call in calls) and not rest.done()
            server.process.terminate()
            for place, call in enumerate(calls):
                vector = tf.make_ndarray(call.result().outputs["embedding"])[0]
                assert np.abs(vector - known[fingerprints[0]][place]).max() < 1e-5
            assert rest.result().status_code == 200
        assert server.stop() == 0
        assert "stopping" in server.log and "Traceback" not in server.log
        with pytest.raises(grpc.RpcError) as refused:
            stub.Predict(request_for(["bank"]), timeout=SOON)
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE


def test_a_second_server_on_the_port_is_refused_in_one_line(living):
    server, base = living
    command = [sys.executable, "-m", "serving.server", "--host", "127.0.0.1", "--port", str(server.port)]
    run = subprocess.run([*command, "--model_base_path", base.path], capture_output=True, text=True, timeout=SOON)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith(f"error: --port {server.port} cannot be listened on")
    assert run.stderr.count("\n") == 1


# another configuration


def test_a_configuration_that_arrives_while_serving_adds_labels_and_removes_models(
    living, stubs, exports, known, fingerprints
):
    server, base = living
    prediction, models = stubs
    second = open_base(str(Path(base.path).with_name("second")))
    for source in exports[:2]:
        second.add(source)

    def configure(*names: str, labels: dict[str, int] | None = None) -> None:
        request = model_management_pb2.ReloadConfigRequest()
        for name in names:
            model = request.config.model_config_list.config.add(name=name, model_platform="tensorflow")
            model.base_path = base.path if name == "pause" else second.path
            if name == "second":
                model.model_version_policy.all.SetInParent()
                model.version_labels.update(labels or {})
        response = models.HandleReloadConfigRequest(request, timeout=SOON)
        assert response.status.error_code == 0

    def answer(name: str, **version) -> tuple[int, str]:
        response = prediction.Predict(request_for(["bank"], name, **version), timeout=SOON)
        return response.model_spec.version.value, response.outputs["model"].string_val[0].decode()

    with Load(server, known, threads=2) as load:
        load.wait_for(base.versions()[-1])
        configure("pause", "second", labels={"stable": 1, "canary": 2})
        assert answer("second") == (2, fingerprints[1])
        assert answer("second", version_label="stable") == (1, fingerprints[0])
        configure("pause", "second", labels={"stable": 2})
        assert answer("second", version_label="stable") == (2, fingerprints[1])
        with pytest.raises(grpc.RpcError, match="canary"):
            answer("second", version_label="canary")
        configure("pause")
        with pytest.raises(grpc.RpcError) as gone:
            answer("second")
        assert gone.value.code() is grpc.StatusCode.NOT_FOUND
        load.wait_for(base.versions()[-1], since=time.monotonic())
    assert load.failures == [] and len(load.versions) == 1
