"""An index moved to another model: nothing is lost, nothing is seen half done, and there is a way back."""

import json
import re
import shlex
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from commands import answer, refusal
from companies import DIMENSION, MODEL, OTHER_MODEL, company, state, vector
from encoder import POISON, Encoder, vector_of
from moving import fill, moved

from index.base import Spec
from index.document import Document, text_hash
from index.errors import WrongModel
from model.contract import DESCRIPTION_ONLY
from pipelines import encode, preflight
from pipelines.options import DEMO_MODEL
from pipelines.reindex import __main__ as reindex
from pipelines.reindex import swap
from pipelines.reindex.move import SAMPLE, Pass
from serving import own_server


def letters(tmp_path):
    return [
        json.loads(line) for path in (tmp_path / "letters").glob("*.jsonl") for line in path.read_text().splitlines()
    ]


# the move


def test_a_move_keeps_every_field_version_and_tombstone(index, new_model, flags, capsys):
    full = {"sector": "Steel", "industry": "Wire", "country": "SE", "website": "https://a.example", "tags": ("x", "y")}
    fill(index)
    index.write([company("full", 5, **full)])
    before = state(index)
    said = moved(capsys, *flags)
    assert f"31 companies and 1 tombstones moved to model {OTHER_MODEL}, 31 encoded" in said
    assert index.spec() == Spec(OTHER_MODEL, DIMENSION)
    after = state(index)
    assert after.keys() == before.keys()
    for id, (document, numbers) in after.items():
        old, _ = before[id]
        if document.deleted:
            assert (document, numbers) == (old, None)
        else:  # encoded by the new model's recipe, which has no industry in it
            assert document == replace(old, model=OTHER_MODEL, text_hash=text_hash(old.description))
            assert numbers == pytest.approx(vector_of(old.description).tolist())
    assert len(new_model.texts) == 31


def test_a_tombstone_still_keeps_older_updates_out(index, flags, capsys):
    fill(index)
    moved(capsys, *flags)
    older = replace(company("gone", 76), model=OTHER_MODEL)
    assert [outcome.status for outcome in index.write([older])] == ["stale"]


def test_the_former_model_answers_until_the_move_is_done(index, new_model, flags, capsys):
    fill(index)
    met = []

    def ask():
        met.append([hit.document.model for hit in index.nearest(vector(1, 0, 0, 0), 3, model=MODEL)])

    new_model.events = {2: ask, 3: ask}
    moved(capsys, *flags, "--batch_size=10")
    assert met == [[MODEL] * 3] * 2
    with pytest.raises(WrongModel):
        index.nearest(vector(1, 0, 0, 0), 3, model=MODEL)
    assert index.nearest(vector_of("Makes 7"), 1, model=OTHER_MODEL)[0].document.id == "7"


def test_writes_during_the_move_are_caught_up(index, new_model, flags, capsys):
    fill(index)
    news = [
        company("new", 500),
        company("1", 501, description="Sells one"),
        company("2", 502, name="Renamed"),  # its text as before
        Document.tombstone("3", 503),
        company("gone", 504),  # is back
    ]
    new_model.events[3] = lambda: index.write(news)
    said = moved(capsys, *flags, "--batch_size=10")
    assert "31 companies and 1 tombstones" in said and "33 encoded" in said
    kept = state(index)
    assert kept["new"][1] == pytest.approx(vector_of("Makes new").tolist())
    assert kept["1"][0].version == 501 and kept["1"][1] == pytest.approx(vector_of("Sells one").tolist())
    assert kept["2"][0].name == "Renamed" and kept["2"][1] == pytest.approx(vector_of("Makes 2").tolist())
    assert new_model.texts.count("Makes 2") == 1
    assert kept["3"][0] == Document.tombstone("3", 503)
    assert kept["gone"][0].version == 504


def test_what_is_written_before_the_last_pass_is_carried_and_who_comes_later_is_told_of_the_model(
    index, new_model, flags, capsys, monkeypatch
):
    fill(index)
    agree, late = swap.agree, []

    def write_first(target, sample):
        index.write([company("last", 900), Document.tombstone("3", 901)])

    def write_meanwhile(*given):
        late.append(pool.submit(index.write, [company("late", 902)]))
        time.sleep(0.3)
        assert not late[0].done()
        return agree(*given)

    monkeypatch.setattr(swap, "check", write_first)
    monkeypatch.setattr(swap, "agree", write_meanwhile)
    with ThreadPoolExecutor(1) as pool:
        assert "30 companies and 2 tombstones" in moved(capsys, *flags)
        with pytest.raises(WrongModel):
            late[0].result(30)
    assert index.get("last").embedding == pytest.approx(vector_of("Makes last"))
    assert index.known(["3"])["3"].deleted and index.known(["late"]) == {}


def test_passes_go_on_while_much_is_new(index, new_model, flags, capsys):
    """30 at first; 12 while they are encoded, which is more than a batch; 4 while those are."""
    fill(index)
    new_model.events[1] = lambda: index.write([company(f"b{i}", 500) for i in range(12)])
    new_model.events[4] = lambda: index.write([company(f"c{i}", 600) for i in range(4)])
    assert "46 companies" in moved(capsys, *flags, "--batch_size=10")
    assert len(new_model.texts) == 46


def test_several_batches_are_encoded_at_a_time(index, new_model, flags, capsys):
    fill(index)
    together = threading.Barrier(3, timeout=20)
    new_model.events = {number: together.wait for number in (1, 2, 3)}
    moved(capsys, *flags, "--batch_size=10", "--in_flight=3")
    assert not together.broken and new_model.events == {}


def test_an_encode_run_with_the_new_model_finds_nothing_to_encode(index, new_model, flags, capsys, tmp_path):
    moment = {"updated_at": "2024-05-01T12:00:00Z"}
    (tmp_path / "in.jsonl").write_text("\n".join(json.dumps(one) for one in records(moment)))
    old = Encoder()
    source = ["--input", str(tmp_path / "in.jsonl"), "--dead_letters", str(tmp_path / "letters")]
    try:
        assert answer(capsys, encode.main, *source, "--index", index.url, "--serving", old.address)[0] == 0
    finally:
        old.stop()
    moved(capsys, *flags)
    code, said, _ = answer(capsys, encode.main, *source, *flags[:4])
    assert code == 0 and "20 read: 20 unchanged; nothing encoded" in said


def records(moment):
    return [{"id": str(i), "description": f"Makes {i}", "industry": "Metal", **moment} for i in range(20)]


# interrupted


def test_after_an_interruption_only_the_rest_is_encoded(index, new_model, flags, capsys, monkeypatch):
    fill(index)
    before = state(index)
    write, calls = type(index).write, []

    def die(self, documents):
        calls.append(len(documents))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return write(self, documents)

    monkeypatch.setattr(type(index), "write", die)
    with pytest.raises(KeyboardInterrupt):
        reindex.main([*flags, "--batch_size=10", "--in_flight=1"])
    monkeypatch.undo()
    assert state(index) == before  # nothing to see of it yet
    assert calls == [10, 10, 10]
    new_model.texts.clear()
    said = moved(capsys, *flags, "--batch_size=10")
    assert "30 companies and 1 tombstones" in said and re.search(r" (9|10) encoded", said)
    assert len(new_model.texts) in (9, 10)  # the tombstone may be among the 11 that were left
    assert index.status().physical.endswith("-2")  # the one that was begun


def test_nothing_goes_live_when_the_endpoint_changes_its_model(index, new_model, flags, capsys):
    fill(index)
    before = state(index)
    third = "f" * 16
    new_model.events[2] = lambda: new_model.publish(third, DESCRIPTION_ONLY, keep=1)
    said = refusal(capsys, reindex.main, *flags, "--batch_size=10", "--in_flight=1")
    assert OTHER_MODEL in said and "not complete" in said
    assert state(index) == before
    assert f"to model {third}, 30 encoded" in moved(capsys, *flags)


# the check


def test_an_index_that_lost_something_does_not_go_live(index, flags, capsys, monkeypatch):
    fill(index)
    status = type(index).status
    monkeypatch.setattr(
        type(index),
        "status",
        lambda self: replace(status(self), live=status(self).live - (self.spec().model == OTHER_MODEL)),
    )
    said = refusal(capsys, reindex.main, *flags)
    assert "holds 29 companies and 1 tombstones, expected 30 and 1" in said
    assert index.spec().model == MODEL


def test_an_index_that_does_not_find_a_company_by_its_vector_does_not_go_live(index, flags, capsys, monkeypatch):
    fill(index)
    nearest = type(index).nearest
    monkeypatch.setattr(type(index), "nearest", lambda self, query, k, *, model: nearest(self, -query, k, model=model))
    assert "by its own vector" in refusal(capsys, reindex.main, *flags)
    assert index.spec().model == MODEL


def test_companies_of_one_text_find_each_other(index, flags, capsys):
    index.write([company(str(i), description="A holding") for i in range(5)])
    assert "5 companies" in moved(capsys, *flags)


def test_the_sample_is_of_all_companies_and_of_no_tombstone():
    done = Pass()
    for number in range(40 * SAMPLE):
        done.look_at(Document(str(number), 1, deleted=number % 2 == 0))
    assert len(done.sample) == len(set(done.sample)) == SAMPLE
    assert all(int(id) % 2 for id in done.sample)
    assert any(int(id) > 20 * SAMPLE for id in done.sample)  # misses once in 2^50 runs


@pytest.mark.parametrize(("lost", "good"), [(2, True), (3, False)])
def test_nothing_goes_live_that_finds_fewer_than_nine_of_ten_by_their_own_vectors(index, monkeypatch, lost, good):
    index.write([company(str(number), 1, (1, number, 0, 0)) for number in range(20)])
    nearest = index.nearest

    def forgetful(wanted, *arguments, **options):
        return [] if wanted[1] < lost else nearest(wanted, *arguments, **options)

    monkeypatch.setattr(index, "nearest", forgetful)
    sample = [str(number) for number in range(20)]
    if good:
        swap.check(index, sample)
    else:
        with pytest.raises(
            swap.CheckFailed, match=r"does not find company '.' by its own vector, but nothing, and so with 3 of 20"
        ):
            swap.check(index, sample)


# what cannot be carried


def test_a_refused_company_is_a_dead_letter_and_all_others_move(index, new_model, flags, capsys, tmp_path):
    fill(index)
    index.write([company("bad", 1714564800000000, description=f"Sells {POISON}")])
    said = moved(capsys, *flags, "--max_dead=0.1")
    assert "30 companies and 1 tombstones" in said and "1 companies are missing" in said
    (letter,) = letters(tmp_path)  # one, in however many passes
    assert (letter["stage"], letter["source"]) == ("encode", index.url)
    assert letter["record"]["id"] == "bad" and letter["record"]["updated_at"] == "2024-05-01T12:00:00Z"
    assert "cannot be encoded" in letter["reason"]
    assert index.known(["bad"]) == {}


def test_a_company_without_a_text_for_the_new_recipe_is_a_dead_letter(index, flags, capsys, tmp_path):
    fill(index)
    index.write([company("blank", description="")])
    moved(capsys, *flags, "--max_dead=0.1")
    (letter,) = letters(tmp_path)
    assert letter["record"]["id"] == "blank" and "makes an empty text" in letter["reason"]


def test_nothing_goes_live_with_more_missing_than_allowed(index, flags, capsys, tmp_path):
    fill(index)
    index.write([company(f"bad {i}", description=f"Sells {POISON} {i}") for i in range(2)])
    said = refusal(capsys, reindex.main, *flags, "--max_dead=0.05")
    assert "--max_dead allows 1" in said and "cannot be encoded" in said
    assert index.spec().model == MODEL
    assert len(letters(tmp_path)) == 2  # to be put right by
    assert "30 companies" in moved(capsys, *flags, "--max_dead=0.07")


def test_a_newer_version_of_a_refused_company_is_tried_again(index, new_model, flags, capsys, tmp_path):
    fill(index)
    index.write([company("bad", 1, description=f"Sells {POISON}")])
    new_model.events[4] = lambda: index.write([company("bad", 2, description="Sells milk")])
    said = moved(capsys, *flags, "--max_dead=0.1", "--batch_size=10")
    assert "31 companies" in said and "missing" not in said
    assert len(letters(tmp_path)) == 1


# before anything is done


def test_an_index_of_this_model_is_left_as_it_is(index, encoder, capsys):
    fill(index)
    before = state(index)
    said = moved(capsys, "--index", index.url, "--serving", encoder.address)
    assert said == f"{index.url} has model {MODEL} already: nothing to do\n"
    assert (state(index), encoder.texts) == (before, [])


def test_no_index_there_is_one_line(flags, capsys, tmp_path):
    flags[1] = str(tmp_path / "nothing")
    assert refusal(capsys, reindex.main, *flags).startswith(f"no index at {flags[1]}")


def test_an_endpoint_that_does_not_answer_is_one_line(index, new_model, flags, capsys, monkeypatch):
    new_model.stop()
    monkeypatch.setattr(preflight, "ANSWER_SECONDS", 0.3)
    assert new_model.address in refusal(capsys, reindex.main, *flags)
    assert index.status().physical.endswith("-1")


def test_without_an_endpoint_or_a_model_to_serve_the_demo_is_named(index, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    said = refusal(capsys, reindex.main, "--index", index.url)
    assert "`make demo`" in said and "--serving" in said


def test_without_an_endpoint_a_server_is_started_for_the_run(index, new_model, capsys, monkeypatch):
    served = []

    class Pretended:
        address = new_model.address

        def __init__(self, *flags):
            served.append(flags)

        def stop(self):
            served.append("stopped")

    monkeypatch.setattr(own_server, "EmbeddedServer", Pretended)
    monkeypatch.setattr(own_server.OwnServer, "contract", lambda self: new_model.contract)
    fill(index)
    assert "30 encoded" in moved(capsys, "--index", index.url)
    flags = ("--model_base_path", DEMO_MODEL, "--keep_versions=2", "--xla_cpu_compilation_enabled=false")
    assert served == [flags, "stopped"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (["--batch_size=0"], "--batch_size must be at least 1, got 0"),
        (["--in_flight=0"], "--in_flight must be at least 1, got 0"),
        (["--max_dead=1.5"], "--max_dead is a share from 0 to 1, got 1.5"),
        (["--max_dead=nan"], "--max_dead is a share from 0 to 1, got nan"),
        (["--dead_letters=projects/p/topics/t"], "--dead_letters takes a folder here"),
        (["--runner=DirectRunner"], "--runner=DirectRunner"),
    ],
)
def test_wrong_flags_are_one_line(wrong, said, capsys):
    assert said in refusal(capsys, reindex.main, *wrong)


def test_the_command_that_a_wrong_model_is_answered_with_does_move_the_index(index, new_model, flags, capsys):
    fill(index)
    with pytest.raises(WrongModel) as error:
        index.require(OTHER_MODEL)
    command = re.search(r"`(.+)`", str(error.value))[1].replace("HOST:PORT", new_model.address)
    assert command.startswith("python -m pipelines.reindex ")
    moved(capsys, *shlex.split(command)[3:])
    index.require(OTHER_MODEL)
