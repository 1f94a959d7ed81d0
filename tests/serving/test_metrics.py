import re

import pytest
from grpc import StatusCode

from serving.server.metrics import Metrics

REQUESTS = ":tensorflow:serving:request_count"
LATENCY = ":tensorflow:serving:request_latency"
VERSION = "pause_version"


@pytest.fixture
def metrics():
    metrics = Metrics()
    metrics.version("pause", 1, "AVAILABLE", "abc")
    return metrics


def samples(metrics, name):
    """Values by labels, of one series' name on the page; the library's own parser would rename some."""
    lines = re.findall(rf"^{name}(?:{{(.*)}})? (\S+)$", metrics.exposition().decode(), re.M)
    return {tuple(sorted(re.findall(r'(\w+)="(.*?)"', labels))): float(number) for labels, number in lines}


def value(metrics, name, **labels):
    return samples(metrics, name)[tuple(sorted(labels.items()))]


def test_a_prediction_is_counted_under_the_name_and_type_that_tensorflow_serving_gives_it(metrics):
    metrics.requested("pause", "predict", "GRPC", StatusCode.OK, 0.002)
    metrics.requested("pause", "predict", "REST", StatusCode.OK, 0.002)
    metrics.requested("pause", "predict", "REST", StatusCode.INVALID_ARGUMENT, 0.002)
    page = metrics.exposition().decode()
    assert "# TYPE :tensorflow:serving:request_count counter\n" in page
    assert ':tensorflow:serving:request_count{model_name="pause",status="OK"} 2.0\n' in page
    assert ':tensorflow:serving:request_count{model_name="pause",status="INVALID_ARGUMENT"} 1.0\n' in page


def test_looking_at_a_model_is_timed_and_is_no_prediction(metrics):
    metrics.requested("pause", "status", "REST", StatusCode.OK, 0.002)
    labels = {"model_name": "pause", "API": "GetModelStatus", "entrypoint": "REST", "status": "OK"}
    assert value(metrics, f"{LATENCY}_count", **labels) == 1
    assert samples(metrics, REQUESTS) == {}
    metrics.requested("pause", "predict", "REST", StatusCode.OK, 0.002)
    assert list(samples(metrics, REQUESTS).values()) == [1]


def test_latency_is_in_microseconds_in_the_buckets_of_tensorflow_serving(metrics):
    metrics.requested("pause", "predict", "GRPC", StatusCode.OK, 15e-6)
    labels = {"model_name": "pause", "API": "Predict", "entrypoint": "GRPC", "status": "OK"}
    bucket = f"{LATENCY}_bucket"
    assert value(metrics, f"{LATENCY}_sum", **labels) == pytest.approx(15)
    assert value(metrics, bucket, **labels, le="10.0") == 0
    assert value(metrics, bucket, **labels, le="18.0") == 1
    assert len(samples(metrics, bucket)) == 34


def test_a_run_tells_its_rows_fill_padding_and_time(metrics):
    metrics.ran("pause", rows=3, capacity=4, real_tokens=30, padded_tokens=64, seconds=0.5)
    metrics.ran("pause", rows=4, capacity=4, real_tokens=60, padded_tokens=64, seconds=0.25)
    model = {"model_name": "pause"}
    assert value(metrics, "pause_batch_rows_sum", **model) == 7
    assert value(metrics, "pause_batch_rows_count", **model) == 2
    assert value(metrics, "pause_batch_rows_bucket", **model, le="2.0") == 0
    assert value(metrics, "pause_batch_fill_sum", **model) == 1.75  # 3/4 + 4/4
    assert value(metrics, "pause_batch_fill_bucket", **model, le="0.8") == 1
    assert value(metrics, "pause_real_tokens_total", **model) == 90
    assert value(metrics, "pause_padded_tokens_total", **model) == 128
    runtime = {**model, "API": "Predict", "runtime": "TF2"}
    assert value(metrics, ":tensorflow:serving:runtime_latency_sum", **runtime) == 750_000


def test_the_queue_is_as_long_as_was_last_said(metrics):
    metrics.queued(7)
    metrics.queued(2)
    assert value(metrics, "pause_queue_texts") == 2


def test_a_version_is_in_one_state_at_a_time(metrics):
    metrics.version("pause", 2, "LOADING", "")
    metrics.version("pause", 2, "AVAILABLE", "def")
    metrics.version("pause", 1, "END", "")
    states = {(dict(key)["version"], dict(key)["state"], dict(key)["fingerprint"]) for key in samples(metrics, VERSION)}
    assert states == {("2", "AVAILABLE", "def"), ("1", "END", "")}
    assert set(samples(metrics, VERSION).values()) == {1}


def test_a_forgotten_version_leaves_the_page_and_its_neighbours_stay(metrics):
    metrics.version("pause", 2, "END", "")
    metrics.load_failed("pause", 2)
    metrics.load_failed("pause", 3)
    assert len(samples(metrics, VERSION)) == 2
    metrics.forget("pause", 2)
    metrics.forget("pause", 9)  # never heard of
    assert [dict(key)["version"] for key in samples(metrics, VERSION)] == ["1"]
    assert [dict(key)["version"] for key in samples(metrics, "pause_load_failures_total")] == ["3"]


def test_failed_loads_add_up(metrics):
    metrics.load_failed("pause", 2)
    metrics.load_failed("pause", 2)
    assert value(metrics, "pause_load_failures_total", model_name="pause", version="2") == 2


def test_made_up_model_names_do_not_make_the_page_grow(metrics):
    metrics.requested("pause", "predict", "GRPC", StatusCode.NOT_FOUND, 0.001)
    metrics.requested("name-0", "predict", "GRPC", StatusCode.NOT_FOUND, 0.001)
    before = len(metrics.exposition().splitlines())
    for number in range(1, 100):
        metrics.requested(f"name-{number}", "predict", "GRPC", StatusCode.NOT_FOUND, 0.001)
    assert len(metrics.exposition().splitlines()) == before
    assert value(metrics, REQUESTS, model_name="unknown", status="NOT_FOUND") == 100
    assert value(metrics, REQUESTS, model_name="pause", status="NOT_FOUND") == 1


def test_two_servers_in_one_process_count_apart(metrics):
    metrics.queued(5)
    assert value(Metrics(), "pause_queue_texts") == 0


def test_every_series_has_its_help_and_type(metrics):
    metrics.requested("pause", "predict", "GRPC", StatusCode.OK, 0.001)
    metrics.ran("pause", rows=1, capacity=1, real_tokens=1, padded_tokens=1, seconds=0.1)
    metrics.load_failed("pause", 2)
    page = metrics.exposition().decode()
    declared = set(re.findall(r"^# TYPE (\S+)", page, re.M))
    assert declared == set(re.findall(r"^# HELP (\S+) \S", page, re.M))
    series = set(re.findall(r"^([^#\s{]+)", page, re.M))
    parts = {name: re.sub(r"_(bucket|sum|count)$", "", name) for name in series}
    assert {name if name in declared else part for name, part in parts.items()} == declared
