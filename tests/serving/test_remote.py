"""What only an object store does; what every base path does is in test_storage.py."""

import os
import threading
import time
from pathlib import Path

import pytest
from flat_store import FlatStore
from version_folders import DATA, FACTS, FILES, content, write_version

from serving.storage.base import StorageError
from serving.storage.open import open_base


@pytest.fixture
def source(tmp_path) -> Path:
    return write_version(tmp_path / "source")


@pytest.fixture
def store(tmp_path):
    (tmp_path / "objects").mkdir()
    return open_base(FlatStore.open_in(tmp_path / "objects"))


def test_the_list_of_files_appears_last_after_the_model(store, source):
    store.add(source)
    appeared = [
        key.removeprefix(f"{store.path}/1/") for call, keys in FlatStore.calls if call == "copy" for key in keys
    ]
    assert appeared[-2:] == ["saved_model.pb", FACTS]
    assert set(appeared[:-2]) == {"variables/variables.index", DATA}
    assert FlatStore.keys() == sorted(f"1/{name}" for name in (*FILES, FACTS))


def test_the_model_vanishes_first(store, source):
    store.add(source)
    for act, name in ((store.withdraw, "1.withdrawn"), (lambda _: store.discard("1.withdrawn"), "1.withdrawn")):
        FlatStore.calls.clear()
        act(1)
        assert FlatStore.calls[0][1] == [f"{store.path}/{name}/saved_model.pb"]
    assert FlatStore.keys() == []


@pytest.mark.parametrize("succeeding", range(9))
def test_a_store_that_fails_on_the_way_is_left_empty(store, source, succeeding):
    # 4 files are uploaded, 1 claim is written, 4 files are copied: the ninth of these is the last
    FlatStore.fail_after = succeeding
    with pytest.raises(StorageError, match=r"^flat://bucket/models/pause/\S+ cannot be used: quota used up$"):
        store.add(source)
    assert FlatStore.keys() == []
    FlatStore.fail_after = 9
    assert store.add(source) == 1


def test_a_number_that_somebody_claims_is_left_to_them(store, source):
    store.add(source)
    (FlatStore.root / "bucket%2Fmodels%2Fpause%2F.claim-2-another%2Fowner").write_text("another")
    assert store.add(source) == 3
    assert store.versions() == [1, 3]


def test_of_two_that_claim_one_number_neither_takes_it(store, source, monkeypatch):
    monkeypatch.setattr("serving.storage.remote.PAUSE", 0.0)
    create, rival = FlatStore._open, "bucket%2Fmodels%2Fpause%2F.claim-1-rival%2Fowner"

    def create_as_a_rival_does(self, path, *arguments, **options):
        if "/.claim-1-" in path:  # the rival looked before, and has written by now
            (self.root / rival).write_text("rival")
        return create(self, path, *arguments, **options)

    monkeypatch.setattr(FlatStore, "_open", create_as_a_rival_does)
    assert store.add(source) == 2
    assert store.versions() == [2]


def test_publishers_to_one_store_at_one_moment_mix_no_files(store, tmp_path, monkeypatch):
    monkeypatch.setattr("serving.storage.remote.PAUSE", 0.01)
    sources = [
        write_version(tmp_path / f"s{mark}", {**FILES, "saved_model.pb": b"graph%d" % mark}) for mark in range(4)
    ]
    together, taken = threading.Barrier(4), {}

    def publish(source):
        together.wait()
        taken[open_base(store.path).add(source)] = source

    threads = [threading.Thread(target=publish, args=[source]) for source in sources]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.versions() == sorted(taken) and len(taken) == 4
    for number, source in taken.items():
        assert content(store.fetch(number, tmp_path / "fetched")) == content(source)


def test_what_a_killed_publisher_left_in_a_store_is_removed_after_a_day(store, source):
    store.add(source)
    for name, age in ((".partial-old/saved_model.pb", 25), (".claim-2-old/owner", 25), (".claim-3-new/owner", 23)):
        path = FlatStore.root / f"bucket/models/pause/{name}".replace("/", "%2F")
        path.write_text("")
        os.utime(path, (time.time() - age * 3600,) * 2)
    assert sorted(store.prune(3)) == [".claim-2-old", ".partial-old"]
    assert store.add(source) == 4  # 3 is claimed


def test_a_fetch_fills_its_directory_anew(store, source, tmp_path):
    store.add(source)
    (tmp_path / "fetched").mkdir()
    (tmp_path / "fetched" / "left over").write_text("from before")
    assert content(store.fetch(1, tmp_path / "fetched")) == content(source)


@pytest.mark.parametrize("key", ["1/../../outside", "1//outside"])
def test_a_key_that_points_outside_is_not_fetched(store, source, tmp_path, key):
    store.add(source)
    (FlatStore.root / f"bucket/models/pause/{key}".replace("/", "%2F")).write_text("hostile")
    with pytest.raises(StorageError, match="outside"):
        store.fetch(1, tmp_path / "deep" / "fetched")
    assert list((tmp_path / "deep").iterdir()) == []


def test_the_folders_a_console_makes_and_files_with_a_number_for_a_name_are_no_versions(store):
    for key in ("7/", "8"):
        (FlatStore.root / f"bucket/models/pause/{key}".replace("/", "%2F")).write_text("")
    assert store.versions() == []
