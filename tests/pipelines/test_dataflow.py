"""The job that Dataflow would get: built without a network, its steps named for good, no secret in it."""

import pytest
from apache_beam.options.pipeline_options import GoogleCloudOptions
from companies import DIMENSION, MODEL

from model.contract import Contract
from pipelines.job import build
from pipelines.options import parse
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
    assert NAMES | BATCHING[source] <= names, names
