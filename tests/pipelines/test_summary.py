"""The end of a run tells why records were bad, which fields nobody reads, and whether that was too many."""

import json

import pytest
from commands import answer
from encoder import POISON
from place import Place

from common.errors import InputError
from pipelines import encode
from pipelines.metrics import counters as metrics
from pipelines.metrics.max_bad import MaxBad
from pipelines.metrics.summary import Summary
from pipelines.options import parse
from pipelines.records import SAME_NAMES


@pytest.fixture
def place(tmp_path, encoder) -> Place:
    return Place(tmp_path, encoder.address)


def good(number: int) -> list[dict]:
    return [{"id": f"g{one}", "description": f"Makes {one}"} for one in range(number)]


def bad(number: int) -> list[dict]:
    return [{"id": f"b{one}"} for one in range(number)]


# how many may be bad


def test_a_run_in_which_nothing_was_good_fails_and_keeps_its_dead_letters(place, capsys):
    code, said, complained = answer(capsys, encode.main, "--input", place.file(*bad(50)), *place.flags)
    assert code == 1
    assert said.startswith("50 read: 50 bad; nothing encoded")
    assert complained == "error: none of 50 records was good; --max_bad 100% would let such a run end well\n"
    assert len(place.dead()) == 50


def test_what_the_encoder_refuses_is_bad_too(place, capsys):
    refused = [{"id": str(number), "description": POISON} for number in range(3)]
    code, said, _ = answer(capsys, encode.main, "--input", place.file(*refused, *bad(1)), *place.flags)
    assert (code, said.split(";")[0]) == (1, "4 read: 1 bad, 3 dead")
    assert "most frequent reasons: description: refused by the encoder (3), description: missing (1)\n" in said


@pytest.mark.parametrize(
    ("wrong", "flags", "code"),
    [
        (0, (), 0),
        (99, (), 0),
        (2, ("--max_bad=1%",), 1),
        (1, ("--max_bad=1%",), 0),
        (1, ("--max_bad=0.01",), 0),
        (2, ("--max_bad=0.01",), 1),
        (2, ("--max_bad=2",), 0),
        (3, ("--max_bad=2",), 1),
        (1, ("--max_bad=0",), 1),
        (0, ("--max_bad=0",), 0),
        (100, ("--max_bad=100%",), 0),
    ],
)
def test_the_flag_decides_from_how_many_on_a_run_fails(place, capsys, wrong, flags, code):
    path = place.file(*good(100 - wrong), *bad(wrong))
    ended, said, complained = answer(capsys, encode.main, "--input", path, *place.flags, *flags)
    assert (ended, "100 read" in said) == (code, True)
    assert complained.count("\n") == code and (f"{wrong} of 100 records were bad" in complained) == bool(code)


def test_nothing_to_read_is_nothing_bad():
    assert MaxBad().allows(0, 0) and MaxBad(number=0).allows(0, 0) and MaxBad(0.0).allows(0, 0)


@pytest.mark.parametrize("text", ["", "-1", "101%", "1.5", "one", "1 %", "nan", "1e3"])
def test_what_is_neither_a_share_nor_a_number_is_refused(text, capsys):
    with pytest.raises(SystemExit, match="2"):
        parse([f"--max_bad={text}"])
    assert "neither a share, such as 1% or 0.01, nor a number" in capsys.readouterr().err


# what it tells


def test_the_most_frequent_reasons_are_told_by_field_and_kind_without_values(place, capsys):
    records = [
        *bad(7),
        *({"id": f"c{one}", "description": one} for one in range(5)),
        *(good(1)[0] | {"updated_at": f"2099-01-0{one}T00:00:00Z"} for one in range(1, 5)),
        *[b"{", b"not json"],
        *good(3),
    ]
    code, said, _ = answer(capsys, encode.main, "--input", place.file(*records), *place.flags)
    assert code == 0
    told = "description: missing (7), description: not a text (5), updated_at: in the future (4), ..."
    assert f"most frequent reasons: {told}\n" in said


def test_unknown_fields_are_told_by_name(place, capsys):
    records = [one | dict.fromkeys(f"n{place}" for place in range(number)) for number, one in enumerate(good(8))]
    _, said, _ = answer(capsys, encode.main, "--input", place.file(*records), *place.flags)
    assert "unknown fields: n0 (7), n1 (6), n2 (5), n3 (4), n4 (3), ...\n" in said
    assert "28 unknown fields ignored" in said


def test_a_file_of_endless_names_fills_neither_the_memory_nor_the_metrics(place):
    before = len(metrics.counted_here[metrics.UNKNOWN])
    records = [one | {f"{number} {i}": 0 for i in range(3000)} for number, one in enumerate(good(20))]
    summary = run(place, *records)
    assert summary.counts["unknown_fields"] == sum(summary.unknown.values()) == 60_000
    assert len(summary.unknown) <= metrics.MOST_NAMES + 1 and metrics.OTHERS in summary.unknown
    assert len(metrics.counted_here[metrics.UNKNOWN]) <= max(before, metrics.MOST_NAMES) + 1
    assert summary.details(SAME_NAMES)[0].count("(") == 5


def test_names_that_cannot_be_printed_are_told_all_the_same(place, monkeypatch):
    monkeypatch.setitem(metrics.counted_here, metrics.UNKNOWN, type(metrics.counted_here[metrics.UNKNOWN])())
    records = [b'{"id": "a", "description": "d", "caf\xe9": 1, "%s": 2}' % (b"x" * 5000), *good(1)]
    told = "\n".join(run(place, *records).details(SAME_NAMES))
    told.encode()
    assert r"caf\udce9 (1)" in told and "x" * 40 + " (1)" in told


def test_a_summary_without_faults_has_nothing_more_to_tell():
    assert Summary({"read": 2, "indexed": 2}).details(SAME_NAMES) == []


def run(place: Place, *records) -> Summary:
    from pipelines import pipeline

    return pipeline.run(parse(["--input", str(place.file(*records)), *place.flags]))


# where dead letters go


def test_dead_letters_go_beside_their_index_and_no_two_indices_share_a_folder(place, capsys):
    flags = place.flags[:-2]
    _, said, _ = answer(capsys, encode.main, "--input", place.file(*good(1), *bad(1)), *flags)
    assert said.endswith(f"dead letters are in {place.index_url}-dead_letters\n")
    (file,) = (place.directory / "index-dead_letters").glob("*.jsonl")
    assert json.loads(file.read_bytes())["record"] == {"id": "b0"}


def test_each_address_has_a_folder_of_its_own():
    addresses = [
        *("build/demo/index", "/a/b/", "lance:///a/c", "index", "http://es:9200/companies", "http://es:9201/companies"),
        *("https://es.internal/companies", "http://a-b:9200/c", "http://a:9200/b-c", "http://[::1]:9200/companies"),
    ]
    folders = [parse(["--index", address]).dead_letters for address in addresses]
    assert len(set(folders)) == len(addresses)
    assert folders[:5] == [
        *("build/demo/index-dead_letters", "/a/b-dead_letters", "/a/c-dead_letters", "index-dead_letters"),
        "build/dead_letters/es_9200/companies",
    ]
    assert parse(["--index=a", "--dead_letters=b"]).dead_letters == "b"


def test_workers_elsewhere_still_need_to_be_told():
    flags = ["--runner=DataflowRunner", "--input=gs://b/*", "--serving=h:8500", "--index=https://es:9200/companies"]
    with pytest.raises(InputError, match="needs --dead_letters"):
        parse(flags)


def test_a_reindex_has_the_same_folder():
    from pipelines.reindex.__main__ import Options

    assert Options(index="a/b").dead_letters == "a/b-dead_letters"
