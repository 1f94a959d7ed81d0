"""Spans where tracing is on, nothing where it is off, and one line for a mistake in the environment."""

import json
import os
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace

import grpc
import pytest
from companies import MODEL
from encoder import Encoder

from common.errors import InputError
from serving.client import EmbeddingClient
from serving.endpoint.channel import ServingUnavailable
from serving.server.compute.run_spans import record_run
from serving.tracing import spans
from serving.tracing.start import settings, start, wanted

ROOT = Path(__file__).parents[2]
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
UNSAMPLED = PARENT[:-1] + "0"


@pytest.fixture
def encoder():
    encoder = Encoder()
    yield encoder
    encoder.stop()


def python(code, **environment):
    """In a process of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    run = [sys.executable, "-c", code]
    return subprocess.run(run, cwd=ROOT, env={**kept, **environment}, capture_output=True, text=True, timeout=120)


# off


def test_off_imports_no_sdk_and_makes_no_span():
    code = """
import sys
from serving.tracing import spans
from serving.tracing.start import start
import serving.client, index.elastic.cluster.connection, pipelines.io.pubsub, search.app
start("pause")
with spans.span("nothing") as made:
    print(made, spans.traceparent() == "", spans.current(), spans.carried(print) is print)
print(sorted(name for name in sys.modules if name.startswith("opentelemetry.sdk")))
"""
    done = python(code)
    assert done.stdout.splitlines() == ["None True None True", "[]"], done.stderr


@pytest.mark.parametrize("environment", [{}, {"OTEL_TRACES_EXPORTER": "none"}, {"OTEL_TRACES_EXPORTER": ""},
                                         {"OTEL_TRACES_EXPORTER": "console", "OTEL_SDK_DISABLED": "true"}])  # fmt: skip
def test_it_is_off_unless_an_exporter_is_named(environment):
    assert wanted(environment) == [] and settings(environment) == {}
    start("pause", environment)
    assert not spans.is_on()


def test_off_sends_no_header(encoder):
    seen = encoder_metadata(encoder)
    with EmbeddingClient([encoder.address]) as client:
        client.embed(["bank"], MODEL)
    assert seen and not any(spans.HEADER in metadata for metadata in seen)


def encoder_metadata(encoder):
    """The metadata of each Predict request from here on."""
    seen, asked = [], encoder._asked

    def noted(request, context):
        seen.append(dict(context.invocation_metadata()))
        return asked(request, context)

    encoder._asked = noted
    return seen


# on


def test_the_client_tells_each_server_of_its_span_from_whichever_thread(encoder, exported):
    seen = encoder_metadata(encoder)
    with EmbeddingClient([encoder.address]) as client, spans.span("batch", parent=PARENT):
        client.embed([f"{number} ".ljust(600, "x") for number in range(200)], MODEL)  # several requests at a time
    found = {span.name: span for span in exported()}
    calls = [span for span in exported() if span.name == "tensorflow.serving.PredictionService/Predict"]
    assert len(calls) == len(seen) > 3
    told = {metadata[spans.HEADER] for metadata in seen}
    assert told == {f"00-{PARENT.split('-')[1]}-{span.context.span_id:016x}-01" for span in calls}
    embedded = found["embed"]
    assert [span for span in calls if span.parent.span_id == embedded.context.span_id]
    assert embedded.parent.span_id == found["batch"].context.span_id
    assert calls[0].attributes["server.address"] == encoder.address and calls[0].kind.name == "CLIENT"


def test_a_call_that_fails_is_an_error_without_its_words(encoder, exported):
    with EmbeddingClient([encoder.address], model="nobody's secret", deadline=0.3) as client:
        encoder._asked = lambda request, context: context.abort(grpc.StatusCode.INTERNAL, "quotes what was asked")
        with pytest.raises(ServingUnavailable):
            client.contract()
    [call] = exported()
    assert call.status.status_code.name == "ERROR" and "quotes" not in call.to_json() and not call.events


def test_a_parent_that_is_no_traceparent_begins_a_trace_of_its_own(exported):
    for given in ("garbage", "00-0-0-01", PARENT[:-3], "ff" + PARENT[2:]):
        with spans.span("asked", parent=given):
            assert spans.traceparent()
    assert [span.parent for span in exported()] == [None] * 4


def test_one_that_is_not_sampled_stays_so(exported):
    with spans.span("asked", parent=UNSAMPLED):
        assert spans.traceparent().startswith(UNSAMPLED[:35]) and spans.traceparent().endswith("-00")
    assert exported() == () and spans.is_sampled(PARENT) and not spans.is_sampled(UNSAMPLED)


def test_the_publisher_of_a_message_is_found_by_either_attribute():
    assert spans.of_message({"traceparent": PARENT}) == PARENT
    assert spans.of_message({"googclient_traceparent": PARENT, "traceparent": UNSAMPLED}) == PARENT
    assert spans.of_message({"other": "x"}) == spans.of_message(None) == ""


def test_a_run_is_told_to_each_request_in_it_with_its_own_wait(exported):
    """One came 3 s before the run began, the other 1 s; it took 2 s."""
    requests = []
    for came in (97.0, 99.0):
        with spans.span("serve predict"):
            requests.append(SimpleNamespace(came=came, trace=spans.current()))
    first, second = requests
    record_run([first, second, second], 100.0, 102.0, (4, 16))
    seconds = {}
    for span in exported():
        seconds.setdefault(span.name, []).append(round((span.end_time - span.start_time) / 1e9, 3))
    assert (seconds["queue"], seconds["compute"], seconds["batch"]) == ([3, 1], [2, 2], [5, 3])
    batches = [span for span in exported() if span.name == "batch"]
    assert [span.attributes["pause.texts"] for span in batches] == [1, 2]
    assert {tuple(span.attributes[f"pause.{name}"] for name in ("rows", "tokens", "requests")) for span in batches} == {
        (4, 64, 2)
    }
    assert len({span.context.trace_id for span in batches}) == 2


# the environment


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"OTEL_TRACES_EXPORTER": "jaeger"}, "OTEL_TRACES_EXPORTER=jaeger is not known; it takes console, otlp, none"),
        ({"OTEL_TRACES_SAMPLER": "sometimes"}, "OTEL_TRACES_SAMPLER=sometimes is not known; it takes always_on"),
        ({"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "7"}, "OTEL_TRACES_SAMPLER_ARG=7 is no"),
        (
            {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            "OTEL_EXPORTER_OTLP_PROTOCOL=grpc is not supported; it takes http/protobuf",
        ),
    ],
)
def test_a_mistake_in_the_environment_is_one_line(environment, said):
    with pytest.raises(InputError, match=re.escape(said)) as caught:
        start("pause", {"OTEL_TRACES_EXPORTER": "console", **environment})
    assert "\n" not in str(caught.value) and not spans.is_on()


@pytest.mark.parametrize("command", ["serving.server", "search", "pipelines.encode", "pipelines.reindex"])
def test_a_program_that_is_started_with_such_a_mistake_ends_with_code_2(command, tmp_path):
    flags = {
        "serving.server": ["--model_base_path", str(tmp_path)],
        "pipelines.reindex": ["--index", "x", "--serving", "x:1"],
    }
    (tmp_path / "1").mkdir()  # a version, for the server to go on to what is asked here
    run = [sys.executable, "-m", command, *flags.get(command, [])]
    environment = {**os.environ, "OTEL_TRACES_EXPORTER": "jaeger"}
    done = subprocess.run(run, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2, done.stderr
    assert "OTEL_TRACES_EXPORTER=jaeger" in done.stderr and "Traceback" not in done.stderr


def test_the_console_has_one_line_a_span_on_standard_error():
    code = """
from serving.tracing import spans
from serving.tracing.start import start
start("pause-search")
with spans.span("outer", texts=2), spans.span("inner"):
    pass
"""
    done = python(code, OTEL_TRACES_EXPORTER="console", OTEL_SERVICE_NAME="mine")
    inner, outer = map(json.loads, done.stderr.splitlines())
    assert (inner["name"], outer["name"], done.stdout) == ("inner", "outer", "")
    assert inner["parent_id"] == outer["context"]["span_id"] and outer["attributes"] == {"pause.texts": 2}
    assert outer["resource"]["attributes"]["service.name"] == "mine"


def test_a_sampler_is_obeyed():
    code = """
from serving.tracing import spans
from serving.tracing.start import start
start("pause")
for _ in range(200):
    with spans.span("question"):
        pass
"""
    ratio = {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.25"}
    lines = python(code, OTEL_TRACES_EXPORTER="console", **ratio).stderr.splitlines()
    assert 20 < len(lines) < 90  # of 200 a quarter, give or take five standard deviations


def test_workers_are_told_all_but_secrets():
    environment = {
        "OTEL_TRACES_EXPORTER": "otlp",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318",
        "OTEL_EXPORTER_OTLP_HEADERS": "authorization=secret",
        "OTEL_TRACES_SAMPLER": "always_on",
        "PATH": "/bin",
    }
    told = settings(environment)
    assert told.keys() == {"OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_TRACES_SAMPLER"}


def test_otlp_reaches_a_collector():
    got = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self):
            got.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Collector) as server, ThreadPoolExecutor(1) as pool:
        serving = pool.submit(server.serve_forever)
        code = """
from serving.tracing import spans
from serving.tracing.start import start
start("pause")
with spans.span("question of mine"):
    pass
"""
        done = python(code, OTEL_TRACES_EXPORTER="otlp",
                      OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{server.server_port}")  # fmt: skip
        threading.Thread(target=server.shutdown).start()
        serving.result(10)
    assert done.returncode == 0, done.stderr
    [(path, body)] = got
    assert path == "/v1/traces" and b"question of mine" in body
