"""One trace id through real programs: message, gRPC and bulk request; page, API, gRPC and index.

Each program writes its spans by the console exporter, and Elasticsearch its own log, in which it names the trace.
"""

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import httpx
import pytest
from browser import Visit, chromium
from embedded import EmbeddedServer
from google.cloud import pubsub
from page_parts import ask
from place import ROOT
from real_servers import running
from traces import CONSOLE, id_of, named, new_traceparent, spans_in
from waiting import wait_until

from index.open import open_index
from infra.local.pubsub import PubSub

PROJECT = "pause-test"
PREDICT = "tensorflow.serving.PredictionService/Predict"
# So that Elasticsearch writes down every document and every query, with the trace that it belongs to.
LOG_ALL = {"index.indexing.slowlog.threshold.index.trace": "0ms", "index.search.slowlog.threshold.query.trace": "0ms"}


@pytest.fixture(scope="module")
def encoder(base):
    """The embedded server, in a process of its own, traced."""
    with pytest.MonkeyPatch.context() as environment:
        for name, value in CONSOLE.items():
            environment.setenv(name, value)
        server = EmbeddedServer(base, "--xla_cpu_compilation_enabled=false")
    with server:
        yield server


@pytest.fixture(scope="module")
def messages():
    with running(PubSub) as server, pytest.MonkeyPatch.context() as environment:
        environment.setenv("PUBSUB_EMULATOR_HOST", server.address)
        publisher = pubsub.PublisherClient()
        with pubsub.SubscriberClient() as subscriber:
            topic, subscription = (f"projects/{PROJECT}/{kind}/companies" for kind in ("topics", "subscriptions"))
            publisher.create_topic(name=topic)
            subscriber.create_subscription(name=subscription, topic=topic)
            yield publisher, topic, subscription
        publisher.stop()
        publisher.transport.close()


@pytest.fixture(scope="module")
def index(elasticsearch_server):
    return f"{elasticsearch_server.address}/traced"


@contextmanager
def program(log, *command):
    """Its spans and logs go to a file: a pipe that nobody reads would fill up."""
    with log.open("w") as file:
        run = subprocess.Popen(
            [sys.executable, "-m", *map(str, command)],
            cwd=ROOT, env={**os.environ, **CONSOLE}, stdout=subprocess.PIPE, stderr=file, encoding="utf-8",
        )  # fmt: skip
    try:
        yield run
    finally:
        run.send_signal(signal.SIGTERM)
        run.communicate(timeout=60)


@pytest.fixture(scope="module")
def published(encoder, messages, index, tmp_path_factory):
    """Three companies from messages to the index; the trace ids of the first two, and the pipeline's log."""
    folder, (publisher, topic, subscription) = tmp_path_factory.mktemp("stream"), messages
    flags = ["--serving", encoder.address, "--index", index, "--dead_letters", folder / "letters"]
    log, ids = folder / "log", []
    stream = ("pipelines.encode", "--runner=DirectRunner", "--subscription", subscription, *flags)
    with program(log, *stream) as run:
        wait_until(lambda: open_index(index).status().live == 0, run)
        httpx.put(f"{index}/_settings", json=LOG_ALL).raise_for_status()
        for number, attribute in enumerate(("googclient_traceparent", "traceparent", "")):
            header, trace = new_traceparent()
            ids.append(trace)
            body = json.dumps({"id": f"c{number}", "description": f"Forges anvils of kind {number}"}).encode()
            publisher.publish(topic, body, **({attribute: header} if attribute else {})).result(30)
            wait_until(lambda expected=number + 1: open_index(index).status().live == expected, run)
    return ids[:2], log


def logged(elasticsearch_server, kind: str) -> str:
    return (elasticsearch_server.folder / "logs" / f"pause-local_index_{kind}_slowlog.json").read_text()


def test_one_trace_id_leads_from_a_message_over_grpc_to_the_bulk_request(published, encoder, elasticsearch_server):
    traces, log = published
    for trace in traces:
        ours, theirs = spans_in(log.read_text(), trace), spans_in(encoder.log, trace)
        [received], [worked] = named(ours, "receive"), named(ours, "AllStages")
        assert received["attributes"]["messaging.system"] == "gcp_pubsub"
        assert worked["parent_id"] == id_of(received)
        [embedded], [sent] = named(ours, "embed"), named(ours, "bulk")
        assert embedded["parent_id"] == sent["parent_id"] == id_of(worked)
        # The server, in another process, goes on where the client's call is.
        calls = {id_of(span) for span in named(ours, PREDICT)}
        served = named(theirs, "serve predict")
        assert calls and {span["parent_id"] for span in served} <= calls
        assert {span["resource"]["attributes"]["service.name"] for span in theirs} == {"pause-serving"}
        [batch] = named(theirs, "batch")
        inside = {id_of(span) for span in served}
        assert batch["parent_id"] in inside and named(theirs, "tokenize")[0]["parent_id"] in inside
        [queue], [compute] = named(theirs, "queue"), named(theirs, "compute")
        assert queue["parent_id"] == compute["parent_id"] == id_of(batch)
        assert batch["start_time"] <= queue["end_time"] == compute["start_time"] <= batch["end_time"]
        # And Elasticsearch, by its own log.
        wait_until(lambda trace=trace: trace in logged(elasticsearch_server, "indexing"), seconds=30)


def test_a_message_without_a_trace_begins_one(published):
    traces, log = published
    received = [span for span in named(spans_in(log.read_text()), "receive") if span["parent_id"] is None]
    [begun] = {span["context"]["trace_id"].removeprefix("0x") for span in received}
    assert begun not in traces
    assert {"AllStages", "embed", PREDICT, "bulk"} <= {span["name"] for span in spans_in(log.read_text(), begun)}


@pytest.fixture(scope="module")
def search(published, encoder, index, tmp_path_factory):
    """The address of a traced search service, and its log."""
    log = tmp_path_factory.mktemp("search") / "log"
    with program(log, "search", "--index", index, "--serving", encoder.address, "--port", 0) as run:
        yield run.stdout.readline().split()[0], log


def assert_led_to_the_index(trace, log, encoder, elasticsearch_server, route="POST /v1/search"):
    wait_until(lambda: bool(named(spans_in(log.read_text(), trace), route)), seconds=30)
    ours, theirs = spans_in(log.read_text(), trace), spans_in(encoder.log, trace)
    [asked] = named(ours, route)
    assert asked["attributes"]["http.response.status_code"] == 200
    calls = {id_of(span) for span in named(ours, PREDICT)}
    assert calls and {span["parent_id"] for span in named(theirs, "serve predict")} <= calls
    assert {"batch", "queue", "compute"} <= {span["name"] for span in theirs}
    [queried] = named(ours, "index ranked")
    assert queried["parent_id"] == id_of(asked)
    assert any(span["parent_id"] == id_of(queried) for span in (*named(ours, "search"), *named(ours, "msearch")))
    wait_until(lambda: trace in logged(elasticsearch_server, "search"), seconds=30)
    return ours


def test_one_trace_id_leads_from_a_caller_over_the_api_to_the_index(search, encoder, elasticsearch_server):
    address, log = search
    header, trace = new_traceparent()
    asked = {"text": "Who forges anvils?", "mode": "hybrid"}
    answer = httpx.post(f"{address}/v1/search", json=asked, headers={"traceparent": header})
    assert len(answer.json()["hits"]) == 3
    ours = assert_led_to_the_index(trace, log, encoder, elasticsearch_server)
    # What people look for is in no span.
    assert "anvils" not in json.dumps(ours) and "Who" not in json.dumps(spans_in(encoder.log, trace))


def test_one_trace_id_leads_from_the_page_to_the_index(search, encoder, elasticsearch_server):
    address, log = search
    with chromium() as browser, Visit(browser, address) as page:
        page.goto("/")
        with page.expect_request("**/v1/search") as sent:
            ask(page, "Forger of anvils for smiths")
        trace = sent.value.headers["traceparent"].split("-")[1]
        assert sent.value.response().ok
    assert_led_to_the_index(trace, log, encoder, elasticsearch_server)
