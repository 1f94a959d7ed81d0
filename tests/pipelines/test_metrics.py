"""What a process tells Prometheus of the pipeline in it."""

import re
import subprocess
import sys
import time
from urllib.request import urlopen

import pytest
from companies import MODEL
from place import ROOT, Place
from prometheus_client import generate_latest

from common.ports import free_port
from index.document import Document
from pipelines import encode, options, pipeline
from pipelines.metrics import counters, exposition
from pipelines.metrics.counters import RECENT_SECONDS, Watch, watched
from pipelines.records import Company

MESSAGES = ("--subscription", "projects/p-local/subscriptions/s")


@pytest.fixture
def place(tmp_path, encoder):
    return Place(tmp_path, encoder.address)


def samples(page: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    lines = re.findall(r"^(\w+)(?:{(.*)})? (\S+)$", page, re.M)
    return {(name, frozenset(re.findall(r'(\w+)="(.*?)"', labels))): float(value) for name, labels, value in lines}


def page(*flags: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return samples(generate_latest(exposition.page(options.parse(list(flags)))).decode())


def value(found, name, **labels) -> float:
    return found[f"pause_pipeline_{name}", frozenset(labels.items())]


def test_the_page_is_there_while_a_run_lasts_and_tells_what_became_of_its_records(place, monkeypatch):
    port, told = free_port(), {}
    finish = pipeline._finish

    def looked_at(*arguments):
        summary = finish(*arguments)
        with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            told.update(samples(answer.read().decode()))
        return summary

    monkeypatch.setattr(pipeline, "_finish", looked_at)
    before = page()
    source = place.file({"id": "a", "description": "Forges anvils"}, {"id": "b", "deleted": True}, b"{", {"id": "c"})
    place.run(source, "--metrics_port", str(port))

    def grown(name, **labels):
        return value(told, name, **labels) - value(before, name, **labels)

    assert grown("read_total") == 4 and grown("encoded_total") == 1
    ends = {end: grown("records_total", end=end) for end in ("bad", "indexed", "deleted", "dead", "stale")}
    assert ends == {"bad": 2, "indexed": 1, "deleted": 1, "dead": 0, "stale": 0}
    assert grown("dead_letters_total", stage="parse") == 2 and grown("dead_letters_total", stage="index") == 0
    assert {part: grown("call_seconds_count", part=part) for part in ("serving", "lookup", "write")} == {
        "serving": 1,
        "lookup": 1,
        "write": 1,
    }
    assert grown("batch_companies_sum") == 2 and value(told, "batch_size") == options.BATCH_SIZE
    assert value(told, "model_info", fingerprint=MODEL) == 1
    assert value(told, "info", runner="DirectRunner", source="files") == 1
    assert time.time() - value(told, "last_success_timestamp_seconds") < 60
    with pytest.raises(OSError):
        urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10)


def test_a_record_s_freshness_is_the_time_from_its_publication_to_its_being_written(place, monkeypatch):
    before = page(*MESSAGES)
    published = (time.time() - 100) * 1e6
    company = Company(Document("a", int(published), description="Forges anvils"), "a message", int(published))
    from pipelines.preflight import reach
    from pipelines.services import Session
    from pipelines.transforms.batch import outputs
    from pipelines.transforms.write import index_batch

    services = reach((place.flags[1],), place.index_url)
    services.created_index()
    session = Session(services)
    assert list(outputs(session.by_live_model(lambda contract: index_batch(session, [company], contract)))) == []
    session.close()
    after = page(*MESSAGES)
    name = "freshness_seconds"
    assert value(after, f"{name}_sum") - value(before, f"{name}_sum") == pytest.approx(100, abs=5)
    buckets = [
        value(after, f"{name}_bucket", le=le) - value(before, f"{name}_bucket", le=le) for le in ("60.0", "120.0")
    ]
    assert buckets == [0, 1]


def test_the_age_of_files_and_replays_is_not_told_as_freshness():
    of_streams = {"pause_pipeline_freshness_seconds_sum", "pause_pipeline_backlog_age_seconds"}
    names = {source: {name for name, _ in page(*flags)} for source, flags in SOURCES.items()}
    assert {source for source, found in names.items() if of_streams <= found} == {"messages", "watch"}
    assert {source for source, found in names.items() if not of_streams & found} == {"files", "replay"}


SOURCES = {
    "files": (),
    "messages": MESSAGES,
    "watch": ("--watch", "*.jsonl", "--runner=PrismRunner"),
    "replay": ("--replay", "projects/p-local/subscriptions/letters"),
}


@pytest.mark.parametrize("source", SOURCES)
def test_a_page_names_where_records_come_from(source):
    (labels,) = [dict(labels) for name, labels in page(*SOURCES[source]) if name == "pause_pipeline_info"]
    assert labels["source"] == source


def test_what_was_read_a_moment_ago_tells_how_long_those_behind_it_wait():
    watch, now = Watch(), 1_000_000.0
    watch.read(int((now - 300) * 1e6), int(now * 1e6))
    watch.read(int((now - 2) * 1e6), int((now + 1) * 1e6))  # another, out of order
    assert watch.waited(now + 1) == 300
    watch.read(int((now + 70 - 2) * 1e6), int((now + 70) * 1e6))
    assert watch.waited(now + 70) == 2
    assert watch.waited(now + 70 + RECENT_SECONDS + 1) == 0  # nothing came since


def test_a_batch_at_work_ages_and_is_counted_and_its_failure_too(monkeypatch):
    monkeypatch.setattr(counters, "watch", watch := Watch())
    monkeypatch.setattr(exposition, "watch", watch)
    told = []
    batch = [Company(Document("a", 1), "", int((time.time() - age) * 1e6)) for age in (50, 200, 10)]

    @watched
    def work(step, batch):
        told.append(page(*MESSAGES))
        raise OSError

    before = page(*MESSAGES)
    with pytest.raises(OSError):
        work(None, batch)
    after = page(*MESSAGES)
    assert value(told[0], "under_way_records") == 3
    assert value(told[0], "oldest_under_way_seconds") == pytest.approx(200, abs=5)
    assert value(told[0], "backlog_age_seconds") == pytest.approx(200, abs=5)
    assert value(after, "under_way_records") == value(after, "oldest_under_way_seconds") == 0
    assert value(after, "failed_batches_total") - value(before, "failed_batches_total") == 1


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--metrics_port=-1",), "--metrics_port must be from 0, which is none, to 65535, got -1"),
        (("--metrics_port=70000",), "to 65535, got 70000"),
        (("--metrics_port=x",), "argument --metrics_port: invalid int value: 'x'"),
        (
            ("--metrics_port=9400", "--direct_running_mode=multi_processing"),
            "--metrics_port: with --direct_running_mode workers are other processes",
        ),
        (
            ("--metrics_port=9400", "--runner=PrismRunner", "--environment_type=DOCKER"),
            "--metrics_port: with --environment_type workers are other processes",
        ),
        (
            ("--metrics_port=9400", "--runner=PrismRunner", "--experiments=use_loopback_process_worker"),
            "--metrics_port: with --experiments workers are other processes",
        ),
        (("--metrics_port=9400", "--metrics_host=no.such.host.invalid"), "at --metrics_host no.such.host.invalid: "),
    ],
)
def test_a_page_that_cannot_be_is_one_line(flags, told, capsys):
    try:
        code = encode.main(["--input", "examples/companies.jsonl", *flags])
    except SystemExit as ended:
        code = ended.code
    said = capsys.readouterr().err
    assert code == 2 and told in said and "Traceback" not in said


def test_a_port_that_is_taken_is_one_line(capsys):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert encode.main([f"--metrics_port={port}"]) == 2
    assert f"--metrics_port {port} cannot be listened on at --metrics_host 127.0.0.1: " in capsys.readouterr().err


def test_a_worker_without_tensorflow_has_all_that_the_page_needs():
    script = "import sys, pipelines.metrics.exposition; sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT).returncode == 0


def test_counting_costs_a_record_a_few_microseconds():
    """A thousand records a second are read at most where they are encoded: 20 us of each would be 2 %."""
    watch, records = Watch(), 20_000
    began = time.process_time()
    for number in range(records):
        watch.read(number, 2 * number)
    counters.ended(counters.Counter(), [1.0] * records)
    assert (time.process_time() - began) / records < 20e-6
