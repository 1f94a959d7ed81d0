"""A job that runs can be replaced by `--update`: its graph is the kept one."""

import json

import apache_beam as beam

from infra.dataflow import graph
from pipelines import pipeline
from pipelines.io.pubsub import ReadMessages


def test_the_graphs_are_the_kept_ones():
    lines = graph.compare()
    assert not lines, "; ".join(lines) + f"; {graph.MEANING}"


def test_a_step_of_another_name_or_coder_is_told(monkeypatch):
    kept = json.loads((graph.KEPT / "messages.json").read_text())
    assert kept["steps"]["Index/Batch/Gather/ParDo(_GroupIntoBatchesDoFn)"]["state"]["values"].startswith("bag_spec")

    class Renamed(beam.PTransform):
        def expand(self, start):
            return start | "Subscription" >> ReadMessages("projects/some-project/subscriptions/companies", None)

    monkeypatch.setattr(pipeline, "_source", lambda options: Renamed())
    lines = graph.differences(kept, graph.graph("messages"))
    assert "step 'Read/Messages' is gone" in lines and "step 'Read/Subscription/Messages' is new" in lines


def test_the_command_says_that_all_is_as_kept_or_what_is_not(monkeypatch, capsys):
    kept = json.loads((graph.KEPT / "messages.json").read_text())
    monkeypatch.setattr(graph, "SOURCES", {"messages": ""})
    monkeypatch.setattr(graph, "graph", lambda source: kept)
    assert graph.main([]) == 0 and "can be updated" in capsys.readouterr().out
    monkeypatch.setattr(graph, "graph", lambda source: {**kept, "steps": {}})
    assert graph.main([]) == 2
    told = capsys.readouterr().err
    assert told.startswith("error: messages.json: step 'DeadLetters' is gone") and "drain" in told
