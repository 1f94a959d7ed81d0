"""What was written, deleted and purged before, during and after a move, and after one that was killed: nothing is
lost, nothing revived, in either direction."""

import os
import random
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from commands import answer, refusal
from companies import DIMENSION, MODEL, OTHER_MODEL, company, state, statuses
from encoder import POISON, vector_of
from moving import fill, moved

from index.__main__ import main as index_command
from index.base import Spec
from index.document import Document
from index.errors import WrongModel
from index.open import open_index
from model.contract import DESCRIPTION_ONLY, INDUSTRY_FIRST
from pipelines.reindex import __main__ as reindex
from pipelines.reindex import swap

ROOT = Path(__file__).parents[2]


def forget(index, id, version=900):
    index.write([Document.tombstone(id, version)])
    index.purge(0)


@pytest.fixture
def both(new_model):
    """The endpoint serves the former model beside the new one."""
    new_model.versions = {1: replace(new_model.contract, fingerprint=MODEL, text_recipe=INDUSTRY_FIRST)} | {
        2: new_model.contract
    }
    return new_model


@pytest.fixture
def back(flags):
    return [*flags, "--rollback"]


# deleted and purged


def test_what_is_purged_during_a_move_is_not_revived(index, new_model, flags, capsys):
    fill(index)
    new_model.events[3] = lambda: forget(index, "3")
    said = moved(capsys, *flags, "--batch_size=10", "--in_flight=1")
    assert "29 companies and 0 tombstones" in said
    assert index.known(["3", "gone"]) == {} and index.status().live == 29


def test_what_is_purged_between_the_passes_is_not_revived(index, new_model, flags, capsys, monkeypatch):
    fill(index)
    monkeypatch.setattr(swap, "check", lambda *_: forget(index, "3"))
    assert "29 companies and 0 tombstones" in moved(capsys, *flags)
    assert index.known(["3"]) == {}


def test_a_move_that_is_resumed_after_a_purge_revives_nobody(index, new_model, flags, capsys, monkeypatch):
    fill(index)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(swap, "check", interrupted)
    with pytest.raises(KeyboardInterrupt):
        reindex.main(flags)
    monkeypatch.undo()
    forget(index, "3")
    assert "29 companies and 0 tombstones" in moved(capsys, *flags)
    assert index.known(["3"]) == {}


def test_a_move_that_is_made_again_after_a_purge_revives_nobody(index, both, flags, back, capsys):
    fill(index)
    moved(capsys, *flags)
    moved(capsys, *back)
    forget(index, "3")
    both.texts.clear()
    assert "29 companies" in moved(capsys, *flags)
    assert index.known(["3"]) == {} and both.texts == []


def test_an_older_version_that_came_after_a_purge_is_what_is_moved(index, both, flags, back, capsys):
    fill(index)
    moved(capsys, *flags)
    moved(capsys, *back)
    forget(index, "3")  # in version 103
    assert statuses(index.write([company("3", 5, description="Older")])) == ["indexed"]
    moved(capsys, *flags)
    assert (index.get("3").version, index.get("3").description) == (5, "Older")
    assert index.get("3").embedding == pytest.approx(vector_of("Older"))


def test_of_one_version_the_greater_content_is_moved(index, new_model, flags, capsys, monkeypatch):
    lesser, greater = sorted((company("a", 5, name=name) for name in ("one", "other")), key=lambda one: one.order)
    index.write([lesser])
    monkeypatch.setattr(swap, "check", lambda *_: index.write([greater]))
    moved(capsys, *flags)
    assert index.get("a").name == greater.name


# the way back


def test_rollback_brings_the_former_index_back(index, flags, capsys):
    fill(index)
    before, physical = state(index), index.status().physical
    moved(capsys, *flags)
    said = moved(capsys, "--index", index.url, "--rollback")
    assert f"answers from {physical} again, with model {MODEL}" in said
    assert state(index) == before


def test_rollback_keeps_what_was_written_and_deleted_since(index, both, flags, back, capsys):
    fill(index)
    index.write([company("renamed", 5, (0, 1, 0, 0)), company("purged", 5)])
    moved(capsys, *flags)
    both.texts.clear()
    since = [
        company("new", 900, vector_of("Makes new")),
        company("1", 901, vector_of("Sells one"), description="Sells one"),
        company("renamed", 902, vector_of("Makes renamed"), name="Renamed"),  # its text as before
    ]
    index.write([replace(one, model=OTHER_MODEL) for one in since])
    index.write([Document.tombstone("2", 903), Document.tombstone("purged", 1)])
    forget(index, "purged", 904)
    index.write([Document.tombstone("3", 905)])
    said = moved(capsys, *back)
    assert f"with model {MODEL}" in said and "2 encoded" in said
    assert sorted(both.texts) == ["Makes new", "Sells one"]
    kept = state(index)
    assert kept["new"][1] == pytest.approx(vector_of("Makes new").tolist()) and kept["new"][0].model == MODEL
    assert kept["1"][0].description == "Sells one"
    assert kept["renamed"][0].name == "Renamed" and kept["renamed"][1] == [0, 1, 0, 0]  # its own vector
    assert kept["3"][0] == Document.tombstone("3", 905)
    assert not {"2", "purged", "gone"} & kept.keys()  # purged there
    assert len(kept) == 31 and index.spec() == Spec(MODEL, DIMENSION)
    assert statuses(index.write([company("later", 1)])) == ["indexed"]


def test_rollback_without_the_former_model_carries_deletes(index, flags, capsys):
    fill(index)
    moved(capsys, *flags)
    index.write([Document.tombstone("3", 900), replace(company("4", 901, vector_of("Makes 4")), model=OTHER_MODEL)])
    moved(capsys, "--index", index.url, "--rollback")
    assert index.known(["3"])["3"].deleted and index.get("4").version == 901
    assert index.get("4").embedding.tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize("asked", [False, True], ids=["nobody asked", "not served"])
def test_rollback_says_what_it_needs_where_the_former_model_is_not_to_be_had(index, flags, back, capsys, asked):
    fill(index)
    moved(capsys, *flags)
    new = replace(company("new", 900, vector_of("Makes new")), model=OTHER_MODEL)
    index.write([new])
    said = refusal(capsys, reindex.main, *(back if asked else ["--index", index.url, "--rollback"]))
    assert "company new has another text" in said and MODEL in said and "--serving HOST:PORT" in said
    assert index.spec().model == OTHER_MODEL and index.get("new").version == 900  # goes on as it was
    assert statuses(index.write([replace(new, version=901)])) == ["indexed"]


def test_rollback_brings_back_what_the_new_model_refused(index, both, flags, back, capsys):
    fill(index)
    index.write([company("bad", 5, description=f"Sells {POISON}")])
    moved(capsys, *flags, "--max_dead=0.1")
    assert index.known(["bad"]) == {}
    moved(capsys, *back)
    assert index.get("bad").version == 5


def test_after_a_rollback_the_move_can_be_made_again_and_knows_what_it_had(index, both, flags, back, capsys):
    fill(index)
    moved(capsys, *flags)
    index.write([replace(company("later", 900, vector_of("Makes later")), model=OTHER_MODEL)])
    moved(capsys, *back)
    index.write([company("5", 901, description="Sells five")])
    both.texts.clear()
    moved(capsys, *flags)
    assert both.texts == ["Sells five"]
    assert index.known(["5", "later"]).keys() == {"5", "later"}


def test_without_a_move_there_is_nothing_to_go_back_to(index, capsys):
    assert "no index before" in refusal(capsys, reindex.main, "--index", index.url, "--rollback")


def test_what_moves_left_behind_is_dropped_by_a_command(index, flags, capsys):
    fill(index)
    former = index.status().physical
    moved(capsys, *flags)
    before = state(index)
    code, said, wrong = answer(capsys, index_command, "drop", "--former", "--index", index.url)
    assert code == 0 and said.startswith(f"removed {former}; {index.url} answers from "), wrong
    assert state(index) == before
    assert "no index before" in refusal(capsys, reindex.main, "--index", index.url, "--rollback")
    assert "nothing to remove" in answer(capsys, index_command, "drop", "--former", "--index", index.url)[1]


# killed

DIES = """
import importlib, os, signal, sys
module, owner, name, when, *flags = sys.argv[1:]
place = importlib.import_module(module)
place = getattr(place, owner) if owner else place
real = getattr(place, name)
def die(*given, **named):
    if when == "after":
        real(*given, **named)
    os.kill(os.getpid(), signal.SIGKILL)
setattr(place, name, die)
from pipelines.reindex import __main__ as reindex
sys.exit(reindex.main(flags))
"""
MOMENTS = {
    "half filled": ("pipelines.reindex.swap", "", "_catch_up", "before"),
    "frozen": ("pipelines.reindex.swap", "", "agree", "before"),
    "about to swap": ("{store}", "{index}", "{go}", "before"),
    "swapped": ("{store}", "{index}", "{go}", "after"),
}


def killed(moment, index, go, flags):
    kind = type(index)
    names = [part.format(store=kind.__module__, index=kind.__name__, go=go) for part in MOMENTS[moment]]
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    command = [sys.executable, "-c", DIES, *names, *flags]
    run = subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True)
    assert run.returncode == -9, run.stderr


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_move_holds_nobody_up_and_is_completed_by_the_same_command(index, new_model, flags, capsys, moment):
    fill(index)
    killed(moment, index, "go_live", flags)
    swapped = moment == "swapped"
    assert index.spec().model == (OTHER_MODEL if swapped else MODEL)
    model = OTHER_MODEL if swapped else MODEL
    began = time.monotonic()
    later = replace(company("later", 900, vector_of("Makes later")), model=model)
    assert statuses(index.write([later, Document.tombstone("3", 901)])) == ["indexed", "deleted"]
    assert time.monotonic() - began < 10
    index.purge(0)
    assert ("nothing to do" if swapped else "30 companies and 0 tombstones") in moved(capsys, *flags)
    kept = state(index)
    assert kept.keys() == {str(number) for number in range(30) if number != 3} | {"later"}
    assert {one.model for one, _ in kept.values()} == {OTHER_MODEL}
    assert kept["later"][1] == pytest.approx(vector_of("Makes later").tolist())


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_rollback_holds_nobody_up_and_is_completed_by_the_same_command(
    index, both, flags, back, capsys, moment
):
    fill(index)
    moved(capsys, *flags)
    index.write([replace(company("new", 900, vector_of("Makes new")), model=OTHER_MODEL)])
    killed(moment, index, "rollback", back)
    swapped = moment == "swapped"
    model = MODEL if swapped else OTHER_MODEL
    assert index.spec().model == model
    index.write([replace(company("later", 901, vector_of("Makes later")), model=model), Document.tombstone("3", 902)])
    if not swapped:
        moved(capsys, *back)
    kept = state(index)
    assert kept["3"][0].deleted and len(kept) == 33
    assert kept["later"][0].version == 901 and kept["new"][0].version == 900
    assert {one.model for one, _ in kept.values() if not one.deleted} == {MODEL}


# under way


class Hammer(threading.Thread):
    """Writes, rewrites and deletes companies of its own, in growing versions, by whichever model is live, and knows
    what was acknowledged."""

    def __init__(self, url, number, model, ended):
        super().__init__(name=f"hammer-{number}")
        self.url, self.number, self.model, self.ended = url, number, model, ended
        self.acknowledged, self.error, self.longest = {}, None, 0.0

    def run(self):
        try:
            index, chance = open_index(self.url), random.Random(self.number)
            for version in range(1, 10**9):
                if self.ended.is_set():
                    return
                ids = {f"{self.number}-{chance.randrange(40)}" for _ in range(4)}
                self.write(index, [self.document(id, version, chance.random() < 0.2) for id in sorted(ids)])
                time.sleep(0.01)
        except Exception as error:
            self.error = error

    @staticmethod
    def document(id, version, deleted):
        text = f"Makes {id} {version}"
        return Document.tombstone(id, version) if deleted else company(id, version, vector_of(text), description=text)

    def write(self, index, documents):
        began = time.monotonic()
        while True:
            ours = [one if one.deleted else replace(one, model=self.model) for one in documents]
            try:
                outcomes = index.write(ours)
                break
            except WrongModel:
                self.model = index.spec().model
        self.longest = max(self.longest, time.monotonic() - began)
        assert not [one for one in outcomes if one.status == "failed"], outcomes
        self.acknowledged |= {one.id: one for one in documents}


def test_no_acknowledged_write_is_lost_whoever_writes_through_moves_back_and_forth(index, both, flags, back, capsys):
    fill(index)
    index.refresh()
    ended, searches = threading.Event(), []
    hammers = [Hammer(index.url, number, MODEL, ended) for number in range(3)]

    def search():
        reader = open_index(index.url, retry_seconds=10.0)
        while not ended.is_set():
            searches.append(len(reader.search("makes", 5)))
            time.sleep(0.02)

    with ThreadPoolExecutor(1) as pool:
        searching = pool.submit(search)
        for one in hammers:
            one.start()
        try:
            for turn in range(2):
                time.sleep(0.5)
                moved(capsys, *(back if turn % 2 else flags))
                index.purge(0)
            moved(capsys, *flags)
        finally:
            ended.set()
            for one in hammers:
                one.join()
        searching.result(30)
    assert [one.error for one in hammers] == [None] * 3
    assert len(searches) > 10 and all(searches)
    kept = {id: one for id, one in state(index).items() if "-" in id}
    wanted = {id: one for hammer in hammers for id, one in hammer.acknowledged.items()}
    assert len(wanted) > 60
    for id, document in wanted.items():
        if document.deleted:
            assert id not in kept or kept[id][0].order == document.order
        else:
            stored, vector = kept[id]
            assert (stored.version, stored.description, stored.model) == (
                document.version,
                document.description,
                OTHER_MODEL,
            )
            assert vector == pytest.approx(vector_of(document.description).tolist())
    assert max(one.longest for one in hammers) < 30, "writers wait for the end of a move alone"
    assert both.contract.text_recipe == DESCRIPTION_ONLY
