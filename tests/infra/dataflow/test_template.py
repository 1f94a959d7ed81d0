"""The template: what it lets pass is what the pipeline takes, and no parameter is a secret."""

import json
import re

import pytest

from infra.dataflow import template
from infra.dataflow.parameters import flags, metadata
from pipelines.options import parse

PARAMETERS = {one["name"]: one for one in metadata()["parameters"]}
SECRET = "PAUSE_ES_API_KEY=projects/p/secrets/key/versions/latest"
# Of each parameter: values that both template and pipeline take, and such that neither does.
VALUES = {
    "input": (["gs://bucket/*.jsonl", "gs://bucket/a/b.csv.gz"], []),
    "watch": (["gs://bucket/**.parquet"], []),
    "subscription": (["projects/p/subscriptions/s"], ["s", "projects/p/topics/t"]),
    "topic": (["projects/p/topics/t"], ["t", "projects/p/subscriptions/s"]),
    "replay": (["gs://bucket/dead/*.jsonl", "projects/p/subscriptions/s"], []),
    "serving": (["serving:8500", "10.0.0.2:8500,serving.internal:8500"], []),
    "index": (["https://es.internal:9200/companies", "http://es/companies"], ["https://me:word@es:9200/companies"]),
    "dead_letters": (["gs://bucket/dead", "projects/p/topics/dead"], ["dead", "/tmp/dead"]),
    "secret": ([SECRET, f"{SECRET},PAUSE_ES_USER=projects/p/secrets/user/versions/3"], ["PAUSE_ES_API_KEY=hunter2"]),
    "force": (["true", "false"], ["1", "yes"]),
    "columns": (["id=cik", "id=cik,description=text"], ["cik", "ticker=t", "id="]),
    "batch_size": (["1", "512"], ["0", "-1", "1.5", "many"]),
    "in_flight": (["3"], ["0", "x"]),
    "max_wait": (["1", "0.5", ".25", "10.0"], ["0", "0.0", "-1", "soon"]),
    "watch_interval": (["10"], ["0", "-5"]),
}
AROUND = {"serving": "serving:8500", "index": "https://es:9200/companies", "dead_letters": "gs://bucket/dead"}


def taken_by_template(name, value):
    return all(re.search(pattern, value) for pattern in PARAMETERS[name]["regexes"])


def taken_by_pipeline(name, value):
    """As the launcher gives it: --name=value, each once."""
    given = {**AROUND, name: value}
    try:
        parse([f"--{key}={one}" for key, one in given.items()] + ["--runner=DataflowRunner"])
    except (SystemExit, ValueError):
        return False
    return True


def test_every_flag_has_values_here():
    assert VALUES.keys() == PARAMETERS.keys() == flags().keys()


@pytest.mark.parametrize("name", VALUES)
def test_the_template_takes_what_the_pipeline_takes(name):
    good, bad = VALUES[name]
    assert [value for value in good if not taken_by_template(name, value)] == []
    assert [value for value in good if not taken_by_pipeline(name, value)] == []
    assert [value for value in bad if taken_by_template(name, value)] == []
    assert [value for value in bad if taken_by_pipeline(name, value)] == []


def test_defaults_are_those_of_the_flags_and_of_their_pattern():
    assert PARAMETERS["batch_size"]["defaultValue"] == "512" and PARAMETERS["force"]["defaultValue"] == "false"
    for name, one in PARAMETERS.items():
        assert "defaultValue" not in one or taken_by_template(name, one["defaultValue"])


def test_what_workers_elsewhere_need_is_required_and_no_parameter_holds_a_secret():
    assert {name for name, one in PARAMETERS.items() if not one["isOptional"]} == AROUND.keys()
    assert not [name for name in PARAMETERS if re.search("password|key|token", name)]
    assert not taken_by_template("secret", "PAUSE_ES_PASSWORD=hunter2")


def test_the_command_writes_the_template_and_says_how_to_put_it_there(tmp_path, capsys):
    image = "europe-west1-docker.pkg.dev/p/pause/pause-pipeline:0.1.0"
    assert template.main(["--out", str(tmp_path), "--image", image, "--bucket", "gs://p-templates"]) == 0
    told = capsys.readouterr().out
    assert f"cp --content-type=application/json {tmp_path}/pause-encode.json gs://p-templates/templates/" in told
    made = json.loads((tmp_path / "pause-encode.json").read_text())
    assert made["image"] == made["defaultEnvironment"]["sdkContainerImage"] == image
    assert made["sdkInfo"] == {"language": "PYTHON", "version": "2.77.0"}
    assert made["metadata"] == json.loads((tmp_path / "metadata.json").read_text()) == metadata()


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["--image", "pause-pipeline:latest", "--bucket", "gs://p-templates"], "not latest"),
        (["--image", "pause-pipeline", "--bucket", "gs://p-templates"], "'pause-pipeline' is no name with a tag"),
        (["--image", "pause-pipeline:1", "--bucket", "p-templates"], "'p-templates' is not gs://NAME"),
        (["--image", "pause-pipeline:1"], "go together"),
        (["--run"], "--run needs both"),
    ],
)
def test_a_bad_flag_is_one_line(tmp_path, argv, told, capsys):
    assert template.main(["--out", str(tmp_path), *argv]) == 2
    assert told in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
