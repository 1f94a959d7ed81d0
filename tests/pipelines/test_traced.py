"""The trace of a batch: that of the first company that is sampled, with links to those of the others."""

import pickle
from types import SimpleNamespace

import pytest
from traces import new_traceparent

from index.document import Document
from pipelines.io.pubsub import _received
from pipelines.records import Company, RawRecord
from pipelines.transforms.batch import Done, Task
from pipelines.transforms.traced import traced


def company(trace=""):
    return Company(Document("a", 1, description="Forges anvils"), "here", trace=trace)


def trace_of(span):
    return f"{span.context.trace_id:032x}"


def plan(batch):
    return Done([Task(one.document, one.source, "text", trace=one.trace) for one in batch])


def test_off_the_work_is_itself():
    assert traced(plan, "Encode") is plan


def test_a_batch_is_in_the_first_sampled_trace_and_linked_to_the_others(exported):
    (first, trace), (second, other) = new_traceparent(), new_traceparent()
    unsampled = new_traceparent()[0][:-1] + "0"
    traced(plan, "Encode")([company(), company(unsampled), company(first), company(first), company(second)])
    [span] = exported()
    assert (span.name, trace_of(span), span.attributes["pause.companies"]) == ("Encode", trace, 5)
    assert [f"{link.context.trace_id:032x}" for link in span.links] == [other]


def test_a_batch_without_a_trace_begins_one_that_its_tasks_take_along(exported):
    done = traced(plan, "SkipUnchanged")([company(), company()])
    traced(plan, "Encode")(done.tasks)
    planned, encoded = exported()
    assert trace_of(planned) == trace_of(encoded) and encoded.parent.span_id == planned.context.span_id


def test_a_batch_of_which_none_is_sampled_is_not(exported):
    header = new_traceparent()[0][:-1] + "0"
    done = traced(plan, "Encode")([company(header)])
    assert exported() == () and done.tasks[0].trace == header


def test_a_task_that_is_planned_anew_keeps_its_trace():
    header, _ = new_traceparent()
    assert Task(company().document, "here", trace=header).company.trace == header


def test_a_message_goes_on_with_the_trace_of_its_publisher(exported):
    header, trace = new_traceparent()
    assert _received(SimpleNamespace(message_id="7", attributes={"traceparent": header})).split("-")[1] == trace
    _received(SimpleNamespace(message_id="8", attributes=None))
    gone_on, begun = exported()
    assert trace_of(gone_on) == trace != trace_of(begun)
    assert gone_on.kind.name == "CONSUMER" and gone_on.attributes["messaging.message.id"] == "7"


@pytest.mark.parametrize("kept", [RawRecord(b"{}", "here"), company(), Task(company().document, "here")])
def test_what_a_release_without_traces_left_in_a_running_job_is_read(kept):
    """An update takes over what the former job had in its state: pickled objects without that field."""
    now = pickle.dumps(kept)
    assert now.count(b"trace") == 1  # the field's name
    former = pickle.loads(now.replace(b"trace", b"other"))
    assert "trace" not in vars(former) and former.trace == ""
