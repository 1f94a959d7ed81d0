"""The services as they run together, under Prometheus with the project's own rules: what they show is what rules and
dashboards ask for, and an outage fires the alert that names it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from embedded import EmbeddedServer
from google.cloud import pubsub
from place import ROOT, Place
from real_servers import available, running
from waiting import wait_until

from common.ports import free_port
from infra.checks import monitoring
from infra.local.prometheus import Prometheus
from infra.local.pubsub import PubSub
from infra.monitoring.catalogue import kept, on_page, to_json

FOLDER = ROOT / "infra" / "monitoring"
PROJECT = "pause-monitored"
# Only where something went wrong.
OF_FAILURES = ('status=~"5.."', 'status!~"OK|INVALID_ARGUMENT"')
PATHS = {"serving": "/monitoring/prometheus/metrics", "search": "/metrics", "pipeline": "/metrics"}


class Stack:
    """Endpoint, stream, search and Prometheus."""

    def __init__(self, server: EmbeddedServer, pages: dict[str, str], publish, encode: subprocess.Popen):
        self.server, self.pages, self.publish, self.encode = server, pages, publish, encode
        self.prometheus: Prometheus

    def page(self, job: str) -> str:
        with urlopen(f"http://{self.pages[job]}{PATHS[job]}", timeout=30) as answer:
            return answer.read().decode()

    def ask(self, path: str, body: dict) -> dict:
        given = {"Content-Type": "application/json"}
        with urlopen(
            Request(f"http://{self.pages['search']}{path}", json.dumps(body).encode(), given), timeout=30
        ) as answer:
            return json.loads(answer.read() or b"{}")

    def value(self, expression: str) -> float:
        (found,) = self.prometheus.query(expression)
        return float(found["value"][1])

    def firing(self, alert: str, **labels: str) -> bool:
        wanted = {"alertname": alert, **labels}
        return any(wanted.items() <= fires.items() for fires in self.prometheus.alerts())


@pytest.fixture(scope="module")
def publish():
    with running(PubSub) as fake, pytest.MonkeyPatch.context() as environment:
        environment.setenv("PUBSUB_EMULATOR_HOST", fake.address)
        publisher = pubsub.PublisherClient(pubsub.types.BatchSettings(max_messages=1))
        topic = publisher.topic_path(PROJECT, "companies")
        publisher.create_topic(name=topic)
        with pubsub.SubscriberClient() as subscriber:
            name = subscriber.subscription_path(PROJECT, "companies")
            subscriber.create_subscription(name=name, topic=topic)
        yield lambda record: publisher.publish(topic, record).result()
        publisher.stop()
        publisher.transport.close()


@pytest.fixture(scope="module")
def stack(exports, publish, tmp_path_factory):
    folder = tmp_path_factory.mktemp("monitored")
    shutil.copytree(exports[0], folder / "pause" / "1")
    with EmbeddedServer(folder / "pause", "--xla_cpu_compilation_enabled=false") as server:
        pages = {"serving": f"127.0.0.1:{server.rest_port}"}
        pages |= {job: f"127.0.0.1:{free_port()}" for job in ("search", "pipeline")}
        port = {job: address.rpartition(":")[2] for job, address in pages.items()}
        place = Place(folder, server.address)
        stream = ("--subscription", f"projects/{PROJECT}/subscriptions/companies", "--metrics_port", port["pipeline"])
        encode = place.start("--runner=DirectRunner", *stream)
        found = Stack(server, pages, publish, encode)
        targets = {job: address for job, address in pages.items()}
        with available(lambda: Prometheus(targets)) as found.prometheus:
            for record in RECORDS:
                publish(record)
            wait_until(lambda: place.index.status().live == 2, encode)
            command = [sys.executable, "-m", "search", "--port", port["search"], "--rate", "0", *place.flags[:4]]
            search = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            try:
                assert b"is the page" in search.stdout.readline()
                yield found
            finally:
                for process in (search, encode):
                    process.kill()
                    process.communicate()


RECORDS = (
    b'{"id": "a", "description": "Forges anvils", "industry": "Metal"}',
    b'{"id": "b", "description": "Bakes bread", "industry": "Food"}',
    b'{"id": "c", "deleted": true}',
    b"{",
)


@pytest.fixture(scope="module")
def used(stack):
    """All has been asked for once, and a version has failed to load."""
    found = stack.ask("/v1/search", {"text": "anvils"})
    given = {"shown": found["shown"], "text": "anvils", "candidate": found["hits"][0]["company"]["id"], "rank": 1}
    stack.ask("/v1/feedback", {**given, "answer": "similar"})
    broken = Path(stack.server.flags[stack.server.flags.index("--model_base_path") + 1]) / "2"
    broken.mkdir()
    (broken / "saved_model.pb").write_bytes(b"no model")
    wait_until(lambda: "pause_load_failures_total{" in stack.page("serving"), seconds=60)
    stack.publish(b'{"id": "d", "description": "Flies passengers"}')
    wait_until(lambda: stack.prometheus.query("pause_pipeline_encoded_total == 3"), seconds=60)
    wait_until(lambda: stack.prometheus.query("pause:search_seconds:p99_5m"), seconds=60)
    # Until search was up, others fired.
    wait_until(lambda: {one["alertname"] for one in stack.prometheus.alerts()} == {"VersionNotLoaded"}, seconds=60)
    return stack


def test_services_show_exactly_the_series_that_are_kept(used):
    shown = {job: on_page(used.page(job)) for job in PATHS}
    (ROOT / "build" / "metrics.json").write_text(to_json(shown))
    there = kept(FOLDER / "metrics.json")
    names = {(job, name) for job in PATHS for name in (*shown[job], *there[job])}
    differing = {(job, name) for job, name in names if shown[job].get(name) != there[job].get(name)}
    assert differing == set(), "build/metrics.json has what they show now"


def test_every_selector_of_rules_and_dashboards_finds_something(used):
    asked = available(lambda: monitoring.said(ROOT))["used"]
    assert len(asked) > 80
    selectors = {one["selector"]: use["where"] for use in asked for one in use["selectors"]}
    empty = {where: text for text, where in selectors.items() if not used.prometheus.query(text)}
    assert {where: text for where, text in empty.items() if not any(only in text for only in OF_FAILURES)} == {}


def test_every_query_of_the_dashboards_is_answered_and_the_figures_are_true(used):
    panels = [use for use in monitoring.said(ROOT)["used"] if use["where"].startswith("dashboards/")]
    unanswered = [use["where"] for use in panels if not used.prometheus.query(use["expression"])]
    assert unanswered == []
    assert used.value("sum(pause_pipeline_records_total)") == used.value("sum(pause_pipeline_read_total)") == 5
    assert used.value('pause_pipeline_dead_letters_total{stage="parse"}') == 1
    assert used.value("max(pause_search_index_companies)") in (2, 3)  # as it was counted last, within a minute
    p99 = "histogram_quantile(0.99, sum by (le) (pause_pipeline_freshness_seconds_bucket))"
    assert 0 < used.value(p99) < 60
    assert used.value("time() - pause_pipeline_last_success_timestamp_seconds") < 120


def test_a_version_that_does_not_load_is_told_and_nothing_else(used):
    assert used.firing("VersionNotLoaded", version="2")
    assert {alert["alertname"] for alert in used.prometheus.alerts()} == {"VersionNotLoaded"}


def test_a_server_that_stops_fires_the_alerts_that_name_it_and_its_start_ends_them(used):
    wait_until(lambda: not used.firing("TargetDown"), seconds=30)
    used.server.stop()
    wait_until(lambda: used.firing("TargetDown", job="serving"), seconds=60)
    wait_until(lambda: used.firing("SearchPartDown", part="serving"), seconds=60)
    assert not used.firing("TargetDown", job="search") and not used.firing("SearchPartDown", part="index")
    used.server.restart()
    wait_until(lambda: not used.firing("TargetDown") and not used.firing("SearchPartDown"), seconds=60)


def test_a_stream_that_is_killed_is_told(used):
    assert not used.firing("PipelineDown")
    os.kill(used.encode.pid, signal.SIGKILL)
    began = time.monotonic()
    wait_until(lambda: used.firing("PipelineDown", job="pipeline"), seconds=60)
    assert time.monotonic() - began < 60
