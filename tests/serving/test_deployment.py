"""The settings of the real server agree with each other, with what the README says, and with the client and model."""

import json
import re
import shlex
import socketserver
import subprocess
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from google.protobuf import text_format
from tensorflow_serving.config.model_server_config_pb2 import ModelServerConfig

from model.contract import MODEL_NAME
from serving.embedded import KEPT_VERSIONS
from serving.server.config.files import CORES, METRICS_PATH, check_models, read_batching, read_models
from serving.server.config.options import parser
from serving.server.config_pb2 import BatchingParameters, MonitoringConfig

SERVING = Path(__file__).parents[2] / "serving"
DOCKERFILE, README = (SERVING / "Dockerfile").read_text(), (SERVING / "README.md").read_text()


def config(name, message):
    return text_format.Parse((SERVING / name).read_text(), message)


def instruction(name):
    """What follows a Dockerfile instruction, continued lines joined."""
    joined = DOCKERFILE.replace("\\\n", " ")
    (found,) = re.findall(rf"^{name} (.*)$", joined, re.MULTILINE)
    return found


def entrypoint():
    command, *flags = json.loads(instruction("ENTRYPOINT"))
    assert command == "tensorflow_model_server"
    return dict(flag.removeprefix("--").split("=") for flag in flags)


def readme_flags():
    """Flag -> default, from the table."""
    return {name: cell.strip() for name, cell in re.findall(r"^\| `--(\w+)` \|(.*?)\|", README, re.MULTILINE)}


# files


def test_the_models_file_serves_the_newest_version_of_the_exported_name_and_the_one_before():
    models = config("models.config", ModelServerConfig())
    check_models(models)
    assert read_models(SERVING / "models.config") == models
    (model,) = models.model_config_list.config
    assert model.name == MODEL_NAME
    assert model.model_version_policy.latest.num_versions == KEPT_VERSIONS


def test_the_queue_holds_the_largest_request_and_runs_are_no_larger_than_requests():
    given = config("batching.config", BatchingParameters())
    run, request = given.max_execution_batch_size.value, given.max_batch_size.value
    assert given.enable_large_batch_splitting.value  # else runs are as large as requests
    assert 1 <= run <= request <= run * given.max_enqueued_batches.value
    assert not given.allowed_batch_sizes


def test_the_largest_request_of_the_client_is_taken():
    from serving import client

    assert config("batching.config", BatchingParameters()).max_batch_size.value >= client.TEXTS_PER_REQUEST


def test_a_run_of_long_texts_is_what_the_graph_encodes_in_one_go():
    from model.training.config import MAX_TOKENS

    (tokens,) = re.findall(
        r"^TOKENS_PER_RUN = (\d+)$", (SERVING.parent / "model" / "network" / "served.py").read_text(), re.MULTILINE
    )
    assert config("batching.config", BatchingParameters()).max_execution_batch_size.value * MAX_TOKENS == int(tokens)


def test_the_embedded_server_reads_the_same_batching_file_to_the_same_effect():
    given, ours = config("batching.config", BatchingParameters()), read_batching(SERVING / "batching.config")
    assert ours.max_texts == given.max_execution_batch_size.value
    assert ours.wait_seconds == given.batch_timeout_micros.value / 1e6
    assert (ours.max_runs_queued, ours.threads) == (given.max_enqueued_batches.value, given.num_batch_threads.value)


def test_metrics_are_where_the_readme_and_the_embedded_server_have_them():
    given = config("monitoring.config", MonitoringConfig()).prometheus_config
    assert (given.enable, given.path) == (True, METRICS_PATH)
    assert f"http://localhost:{entrypoint()['rest_api_port']}{METRICS_PATH}" in README


# Dockerfile


def test_the_image_starts_with_the_files_that_were_copied_into_it():
    *copied, target = instruction("COPY").split()
    files = {name: value for name, value in entrypoint().items() if name.endswith("_file")}
    assert files == {
        "model_config_file": target + "models.config",
        "batching_parameters_file": target + "batching.config",
        "monitoring_config_file": target + "monitoring.config",
    }
    assert sorted(copied) == sorted(Path(name).name for name in files.values())
    assert all((SERVING / name).is_file() for name in copied)


def test_every_flag_of_the_image_is_one_of_the_embedded_server_too():
    parser().parse_args([f"--{name}={value}" for name, value in entrypoint().items()])


def test_ports_agree_in_image_readme_and_compose_excerpt():
    ports = [entrypoint()["port"], entrypoint()["rest_api_port"]]
    assert instruction("EXPOSE").split() == ports
    assert re.findall(r"--publish (\d+):(\d+)", README) == [(port, port) for port in ports]
    (listed,) = re.findall(r"ports: (\[.*\])", README)
    assert json.loads(listed) == [f"{port}:{port}" for port in ports]
    assert readme_flags()["port"] == f"`{ports[0]}`"


def test_the_image_is_pinned_and_named_alike_in_the_readme():
    image, tag = instruction("FROM").split(":")
    assert image == "tensorflow/serving" and re.fullmatch(r"\d+\.\d+\.\d+", tag)
    assert f"`{image}:{tag}`" in README


def test_the_image_does_not_run_as_root():
    user, group = map(int, instruction("USER").split(":"))
    assert user > 0 and group > 0
    assert f"({user})" in README


def test_the_volume_in_the_readme_holds_the_base_path():
    (model,) = config("models.config", ModelServerConfig()).model_config_list.config
    mounts = re.findall(r'(?:--volume|volumes:) \[?"[^":]+:([^":]+):ro"', README)
    assert mounts == [str(Path(model.base_path).parent)] * 2


# health


class _Status(BaseHTTPRequestHandler):
    state, code, asked = "", "OK", ""

    def do_GET(self):
        type(self).asked = self.path
        status = {"version": "1", "state": self.state, "status": {"error_code": self.code}}
        body = json.dumps({"model_version_status": [status]}, indent=1).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *arguments):
        pass


def health(port):
    command = json.loads(instruction("HEALTHCHECK").partition(" CMD ")[2])
    rest_port = entrypoint()["rest_api_port"]
    assert f"/dev/tcp/127.0.0.1/{rest_port} " in command[-1]
    command[-1] = command[-1].replace(f"/{rest_port} ", f"/{port} ")
    return subprocess.run(command, capture_output=True, timeout=10).returncode


@pytest.mark.parametrize(
    ("state", "code", "healthy"),
    [("AVAILABLE", "OK", True), ("LOADING", "OK", False), ("END", "UNAVAILABLE", False)],
)
def test_the_container_is_healthy_once_a_version_is_available(state, code, healthy):
    class Status(_Status):
        pass

    Status.state, Status.code = state, code
    with socketserver.TCPServer(("127.0.0.1", 0), Status) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            assert (health(server.server_address[1]) == 0) is healthy
        finally:
            server.shutdown()
            thread.join()
    assert Status.asked == f"/v1/models/{MODEL_NAME}"


def test_the_container_is_not_healthy_where_nothing_listens():
    with socketserver.TCPServer(("127.0.0.1", 0), _Status, bind_and_activate=False) as server:
        server.server_bind()  # the port is ours, and nobody answers at it
        assert health(server.server_address[1]) != 0


# README


def test_the_readme_lists_every_flag_with_its_default():
    known = vars(parser().parse_args([]))
    written = {name: "" if value is None else f"`{str(value).lower()}`" for name, value in known.items()}
    assert known["grpc_max_threads"] == 4 * CORES
    assert readme_flags() == {**written, "model_name": f"`{MODEL_NAME}`", "grpc_max_threads": "4 x cores"}


def test_the_command_of_the_readme_is_understood():
    (line,) = re.findall(r"^python -m serving\.server (.*)$", README, re.MULTILINE)
    given = parser().parse_args(shlex.split(line))
    assert (given.port, given.rest_api_port) == (8500, 8501)


def test_every_file_that_the_readme_names_is_there():
    (table,) = re.findall(r"\| file \| what it is \|\n(?:\|.*\n)+", README)
    names = re.findall(r"`([\w./]+)`", re.sub(r"`python.*?`", "", table))
    assert {"client.py", "publish.py", "Dockerfile"} <= set(names)
    assert [name for name in names if not (SERVING / name).exists()] == []
