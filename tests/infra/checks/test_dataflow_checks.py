"""Planted mistakes of a template, each named by a check."""

import json
import shutil

import pytest
from real_servers import available

from infra.checks.dataflow import METADATA, against_flags, by_gcloud, by_graph, launch_by_gcloud, structure
from infra.dataflow import graph, parameters
from infra.local.processes import ROOT


@pytest.fixture
def root(tmp_path):
    (tmp_path / "infra").mkdir()
    shutil.copytree(ROOT / "infra" / "dataflow", tmp_path / "infra" / "dataflow")
    return tmp_path


def plant(root, change):
    file = root / METADATA
    kept = json.loads(file.read_text())
    change({one["name"]: one for one in kept["parameters"]}, kept)
    file.write_text(json.dumps(kept))


def add(name):
    one = {"name": name, "label": "Epochs", "helpText": "Epochs", "paramType": "NUMBER", "regexes": ["^[0-9]+$"]}
    return lambda _, kept: kept["parameters"].append(one)


def remove(name):
    return lambda known, kept: kept["parameters"].remove(known[name])


def set_to(name, **fields):
    return lambda known, kept: known[name].update(fields)


def test_the_kept_metadata_is_as_the_flags_are():
    assert against_flags(ROOT) == [] and structure(ROOT) == []


@pytest.mark.parametrize(
    ("change", "check", "told"),
    [
        (add("epochs"), against_flags, "parameter epochs is no flag of pipelines.encode"),
        (remove("max_wait"), against_flags, "flag --max_wait has no parameter"),
        (set_to("batch_size", defaultValue="9"), against_flags, "parameter batch_size is not as its flag is in"),
        (set_to("index", regexes=[]), structure, "parameter index: anything would be accepted"),
        (set_to("index", paramType="URL"), structure, "paramType URL is none of Dataflow's"),
        (set_to("index", optional=True), structure, "parameter index: optional is no field"),
        (set_to("index", helpText=""), structure, "parameter index: helpText is empty"),
        (set_to("index", regexes=["("]), structure, "parameter index: ( is no pattern"),
        (set_to("in_flight", defaultValue="0"), structure, "parameter in_flight: its default"),
    ],
)
def test_a_mistake_in_the_metadata_is_named(root, change, check, told):
    assert check(root) == []
    plant(root, change)
    assert any(line.startswith(METADATA) and told in line for line in check(root)), check(root)


def test_a_flag_that_is_new_is_missed_in_the_metadata(monkeypatch):
    made = parameters.command_parser

    def with_another():
        parser = made()
        parser.add_argument("--colour")
        return parser

    monkeypatch.setattr(parameters, "command_parser", with_another)
    assert [line for line in against_flags(ROOT) if "flag --colour has no parameter" in line]


def test_what_gcloud_cannot_place_is_named(root):
    assert available(lambda: by_gcloud(root)) == []
    plant(root, set_to("index", optional=True))
    assert any("index.optional" in line for line in by_gcloud(root))
    plant(root, set_to("serving", label=""))
    assert any("label field is empty" in line for line in by_gcloud(root))


def test_a_launch_that_the_service_would_not_understand_is_named(root):
    shutil.copytree(ROOT / "infra" / "terraform", root / "infra" / "terraform")
    assert available(lambda: launch_by_gcloud(root)) == []
    file = root / "infra" / "terraform" / "dataflow.tf"
    file.write_text(
        file.read_text().replace("maxWorkers  ", "max_workers ").replace("containerSpecGcsPath", "template")
    )
    told = launch_by_gcloud(root)
    assert any("environment.max_workers" in line for line in told) and any(
        "launchParameter.template" in line for line in told
    )


def test_a_step_coder_or_state_that_changed_is_named_with_what_it_means(root, monkeypatch):
    kept = {source: json.loads((graph.KEPT / f"{source}.json").read_text()) for source in graph.SOURCES}
    monkeypatch.setattr(graph, "graph", kept.__getitem__)  # the real ones are built in test_graph.py
    assert by_graph(root) == []
    file = root / "infra" / "dataflow" / "graphs" / "messages.json"
    planted = json.loads(file.read_text())
    steps = planted["steps"]
    steps["Index/Vectorise"] = steps.pop("Index/Encode")
    steps["Index/Batch/Shard"]["outputs"]["None"] = "kv:v1<string_utf8:v1, FastPrimitivesCoder>"
    gather = steps["Index/Batch/Gather/ParDo(_GroupIntoBatchesDoFn)"]
    gather["state"]["values"] = "bag_spec bytes:v1"
    del gather["timers"]["ts-window_end"]
    planted["elements"]["Company"].remove("source")
    file.write_text(json.dumps(planted))
    told = "\n".join(by_graph(root))
    assert "messages.json: step 'Index/Vectorise' is gone" in told
    assert "messages.json: step 'Index/Encode' is new" in told
    assert "'Index/Batch/Shard' changed: outputs None from \"kv:v1<string_utf8:v1" in told
    assert 'state values from "bag_spec bytes:v1"' in told and "timers ts-window_end from null" in told
    assert "element 'Company' changed" in told
    assert "drain it" in told and "python -m infra.dataflow.graph --keep" in told
    file.unlink()
    assert any("messages.json: " in line for line in by_graph(root))
