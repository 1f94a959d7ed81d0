"""The job that Dataflow would get: built without a network, its steps named for good, no secret in it."""

import json

import pytest
from apache_beam.options.pipeline_options import GoogleCloudOptions
from companies import DIMENSION, MODEL

from model.contract import Contract
from pipelines import pipeline
from pipelines.options import parse
from pipelines.pipeline import build
from pipelines.services import Services

FLAGS = [
    *("--runner=DataflowRunner", "--project=some-project", "--region=europe-west1", "--temp_location=gs://bucket/temp"),
    *("--staging_location=gs://bucket/staging", "--dry_run=True", "--no_auth", "--job_name=companies"),
    *("--serving=serving:8500", "--index=https://es:9200/companies", "--dead_letters=gs://bucket/dead"),
    "--secret=PAUSE_ES_API_KEY=projects/some-project/secrets/key/versions/latest",
]
SOURCES = {
    "files": "--input=gs://bucket/*.jsonl",
    "watch": "--watch=gs://bucket/*.jsonl",
    "messages": "--subscription=projects/some-project/subscriptions/companies",
    "replay": "--replay=gs://bucket/dead/*.jsonl",
}
# A running job is updated only where these are the same.
NAMES = {
    "Index/Parse",
    "Index/SkipUnchanged",
    "Index/Encode",
    "Index/Write",
    "Index/Dead",
    "DeadLetters/Files",
}
# Each of these is a composite around its DoFn, whose class is a part of the step's name.
STEPS = {f"Index/{name}/ParDo({name})" for name in ("Parse", "SkipUnchanged", "Encode", "Write")}
BATCHING = {
    "files": {"Read/Split", "Read/Spread", "Read/Records", "Index/Batch/InBundle"},
    "watch": {"Read/Watch", "Read/Split", "Read/Records", "Index/Batch/InBundle"},
    "messages": {"Read/Messages", "Read/Arrive", "Index/Batch/Shard", "Index/Batch/Gather", "Index/Batch/Values"},
    "replay": {"Read/Records", "Replay/Revive", "Index/Batch/InBundle"},
}


@pytest.fixture
def job(monkeypatch):
    """Of a source: the job as Dataflow would get it, and its steps."""
    monkeypatch.setattr(GoogleCloudOptions, "_handle_temp_and_staging_locations", lambda self, validator: [])
    monkeypatch.setenv("PAUSE_ES_API_KEY", "hunter2")
    monkeypatch.setenv("PAUSE_ES_PASSWORD", "hunter2")

    def built(source: str):
        options = parse([SOURCES[source], *FLAGS])
        services = Services(
            options.serving, options.index, Contract(MODEL, DIMENSION, 128, "{description}"), options.secrets
        )
        pipeline = build(options, services)
        return pipeline.run().job, pipeline.to_runner_api()

    return built


@pytest.mark.parametrize("source", SOURCES)
def test_the_job_is_built_with_its_names_and_without_secrets(job, source):
    made, graph = job(source)
    assert "hunter2" not in str(made) and "hunter2" not in str(graph)
    assert b"hunter2" not in graph.SerializeToString()
    names = {step.unique_name for step in graph.components.transforms.values()}
    assert NAMES | STEPS | BATCHING[source] <= names, names


# What the launcher of a flex template adds, each of which Beam must know: an unknown flag would be refused.
LAUNCHER = [
    *("--service_account_email=worker@some-project.iam.gserviceaccount.com", "--machine_type=n2-standard-2"),
    *("--subnetwork=regions/europe-west1/subnetworks/pause", "--network=pause", "--no_use_public_ips"),
    *("--sdk_container_image=registry/pause-pipeline:1", "--sdk_location=container", "--num_workers=1"),
    *("--max_num_workers=4", "--autoscaling_algorithm=THROUGHPUT_BASED", "--enable_streaming_engine"),
    *('--labels={"goog-terraform-provisioned":"true"}', "--experiments=use_runner_v2"),
]


@pytest.mark.parametrize("source", SOURCES)
def test_a_template_ends_with_the_description_of_its_job(monkeypatch, tmp_path, source):
    monkeypatch.setattr(GoogleCloudOptions, "_handle_temp_and_staging_locations", lambda self, validator: [])
    replaced = ("--dry_run", "--staging_location")
    flags = [flag for flag in FLAGS if not flag.startswith(replaced)]
    place = tmp_path / "template_launches" / "job_object"
    place.parent.mkdir()
    options = parse(
        [SOURCES[source], *flags, *LAUNCHER, f"--template_location={place}", f"--staging_location={tmp_path}"]
    )
    contract = Contract(MODEL, DIMENSION, 128, "{description}")
    monkeypatch.setattr(
        pipeline.preflight,
        "services",
        lambda options, size: (Services(options.serving, options.index, contract, options.secrets), None),
    )
    monkeypatch.setattr(pipeline.preflight, "input_bytes", lambda options: 0)
    assert pipeline.run(options) is None  # there is no job yet whose counters could be asked for
    described = json.loads(place.read_text())
    assert described["environment"]["serviceAccountEmail"].startswith("worker@")
    assert described["type"] == ("JOB_TYPE_BATCH" if source in ("files", "replay") else "JOB_TYPE_STREAMING")
