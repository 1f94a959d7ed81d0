"""Flags become one object; a wrong one is told in one line, ours or Beam's."""

import pytest
from apache_beam.options.pipeline_options import StandardOptions, WorkerOptions

from common.errors import InputError
from pipelines.options import EXAMPLES, Options, parse

DATAFLOW = [
    *("--runner=DataflowRunner", "--input=gs://b/*.jsonl", "--serving=h:8500", "--index=https://es:9200/companies"),
    "--dead_letters=gs://b/dead",
]


def refused(*argv) -> str:
    with pytest.raises(InputError) as refusal:
        parse(argv)
    return str(refusal.value)


def test_without_flags_the_examples_are_encoded_on_this_machine():
    options = parse([])
    assert (options.input, options.serving, options.runner) == (EXAMPLES, (), "DirectRunner")
    assert options.is_local and not options.is_streaming


def test_our_flags_are_ours_and_the_rest_is_beams():
    options = parse(
        ["--input", "a*.csv", "--num_workers", "7", "--columns", "id=cik,description=text", "--batch_size=9"]
    )
    assert (options.input, options.batch_size, options.beam) == ("a*.csv", 9, ("--num_workers", "7"))
    assert options.columns.names == {"id": "cik", "description": "text"}
    assert options.pipeline_options().view_as(WorkerOptions).num_workers == 7


@pytest.mark.parametrize("flag", ["--subscription=projects/p/subscriptions/s", "--topic=projects/p/topics/t"])
def test_messages_make_a_stream(flag):
    options = parse([flag])
    assert options.reads_messages and options.is_streaming and options.files is None
    assert options.pipeline_options().view_as(StandardOptions).streaming


def test_a_replay_is_of_files_or_of_a_subscription():
    assert parse(["--replay=dead/*.jsonl"]).files == "dead/*.jsonl"
    assert parse(["--replay=projects/p/subscriptions/s"]).reads_messages


def test_a_flag_that_nobody_knows_is_refused_and_not_dropped():
    assert "knows --inptu" in refused("--inptu", "a.jsonl")
    assert "knows --batch" in refused("--batch=3")  # no shortened flags either
    assert "knows a.jsonl" in refused("a.jsonl")


def test_a_wrong_value_of_beams_is_one_line_too():
    reason = refused("--num_workers=many")
    assert "num_workers" in reason and "\n" not in reason


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        (["--batch_size=0"], "--batch_size must be at least 1, got 0"),
        (["--in_flight=0"], "--in_flight must be at least 1"),
        (["--max_wait=0"], "--max_wait must be above 0"),
        (["--max_wait=nan"], "--max_wait must be above 0"),
        (["--subscription=s"], "'s' is not projects/PROJECT/subscriptions/NAME"),
        (["--topic=projects/p/subscriptions/s"], "is not projects/PROJECT/topics/NAME"),
        (["--watch=a*.jsonl"], "--runner=PrismRunner"),
    ],
)
def test_a_wrong_value_is_told_with_what_is_accepted(argv, reason):
    assert reason in refused(*argv)


@pytest.mark.parametrize(
    "argv", [["--columns", "cik"], ["--columns", "ticker=t"], ["--columns", "id="], ["--secret", "hunter2"]]
)
def test_what_the_parser_refuses_is_one_line_that_repeats_no_secret(argv, capsys):
    with pytest.raises(SystemExit, match="2"):
        parse(argv)
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "hunter2" not in said


def test_two_sources_at_once_are_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        parse(["--input=a.jsonl", "--topic=projects/p/topics/t"])
    assert "not allowed with" in capsys.readouterr().err


def test_a_job_elsewhere_needs_addresses_that_it_can_reach():
    assert parse(DATAFLOW).runner == "DataflowRunner"
    for position, needed in [(2, "--serving"), (3, "--index"), (4, "--dead_letters")]:
        assert f"needs {needed}" in refused(*DATAFLOW[:position], *DATAFLOW[position + 1 :])


def test_a_password_in_the_address_is_refused_unrepeated():
    reason = refused("--index=https://elastic:hunter2@es:9200/companies")
    assert "PAUSE_ES_PASSWORD" in reason and "hunter2" not in reason


def test_secrets_go_by_name():
    name, other = "projects/p/secrets/key/versions/latest", "projects/p/secrets/user/versions/2"
    both = {"PAUSE_ES_API_KEY": name, "PAUSE_ES_USER": other}
    assert parse(["--secret", f"PAUSE_ES_API_KEY={name}"]).secrets == {"PAUSE_ES_API_KEY": name}
    assert parse([f"--secret=PAUSE_ES_API_KEY={name}", f"--secret=PAUSE_ES_USER={other}"]).secrets == both
    assert parse([f"--secret=PAUSE_ES_API_KEY={name},PAUSE_ES_USER={other}"]).secrets == both


def test_a_switch_may_have_a_value_as_a_template_gives_every_flag_one(capsys):
    given = [parse(["--force", *rest]).force for rest in ([], ["--max_wait", "2"])]
    assert [*given, parse(["--force=true"]).force] == [True, True, True]
    assert not parse([]).force and not parse(["--force=false"]).force
    with pytest.raises(SystemExit):
        parse(["--force=maybe"])
    assert "'maybe' is neither true nor false" in capsys.readouterr().err


def test_options_are_frozen():
    with pytest.raises(AttributeError):
        Options().input = "b"
