import os
import subprocess
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from flat_store import FlatStore
from version_folders import DATA, FACTS, FILES, content, write_version

from model.errors import ExportError
from serving.storage.base import StorageError, incomplete
from serving.storage.local import Local
from serving.storage.open import open_base

ROOT = Path(__file__).parents[2]


@pytest.fixture
def source(tmp_path) -> Path:
    return write_version(tmp_path / "source")


@pytest.fixture(params=["local", "file URL", "object store"])
def base(request, tmp_path):
    """An empty base path of each kind."""
    if request.param == "object store":
        (tmp_path / "objects").mkdir()
        return open_base(FlatStore.open_in(tmp_path / "objects") + "/")
    path = tmp_path / "models" / "pause one"
    return open_base(str(path) if request.param == "local" else path.as_uri())


# every base path


def test_a_base_path_that_does_not_exist_holds_no_versions(base):
    assert base.versions() == [] and base.files(1) == {}


def test_what_is_added_takes_the_next_number_and_is_fetched_again_byte_by_byte(base, source, tmp_path):
    assert [base.add(source) for _ in range(2)] == [1, 2]
    assert base.versions() == [1, 2]
    assert base.incomplete(2) is None
    assert {name: file.size for name, file in base.files(2).items()} == {
        name: len(data) for name, data in content(source).items()
    }
    assert content(base.fetch(2, tmp_path / "fetched")) == content(source)


def test_every_byte_copied_is_reported(base, source):
    reported = []
    base.add(source, reported.append)
    assert sum(reported) == sum(len(data) for data in content(source).values())


def test_a_file_that_export_did_not_list_stays_behind(base, source):
    (source / "notes.txt").write_text("mine")
    base.add(source)
    assert set(base.files(1)) == {*FILES, FACTS}


def test_a_withdrawn_version_is_out_of_sight_and_its_number_is_never_used_again(base, source):
    base.add(source)
    base.add(source)
    base.withdraw(2)
    assert base.versions() == [1] and base.files(2) == {}
    assert base.add(source) == 3


def test_a_removed_version_leaves_the_others(base, source):
    for _ in range(3):
        base.add(source)
    base.remove(2)
    assert base.versions() == [1, 3]


def test_an_incomplete_source_is_refused_and_leaves_nothing(base, source):
    (source / DATA).write_bytes(b"w" * 12)
    with pytest.raises(ExportError, match="12 of 90,112 bytes"):
        base.add(source)
    assert base.versions() == [] and base.prune(1) == []


def test_an_interrupted_copy_leaves_nothing(base, source, tmp_path):
    def interrupt(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        base.add(source, interrupt)
    assert content(tmp_path / "objects") == content(tmp_path / "models") == {}
    assert base.add(source) == 1


def test_a_source_that_shrinks_while_it_is_copied_is_not_published(base, source):
    with pytest.raises(StorageError, match=f"copy of {DATA} has 0 of 90,112 bytes"):
        base.add(source, lambda _: (source / DATA).write_bytes(b""))
    assert base.versions() == []


def test_pruning_keeps_the_last_complete_versions_and_what_is_newer(base, source):
    for _ in range(5):
        base.add(source)
    base.withdraw(1)
    base.withdraw(5)
    base.remove(3)
    assert base.versions() == [2, 4]
    assert sorted(base.prune(1)) == ["1.withdrawn", "2"]
    assert base.versions() == [4]
    assert base.add(source) == 6  # 5 is withdrawn, and still there


def test_nothing_but_the_newest_is_ever_pruned_from_one_version(base, source):
    base.add(source)
    assert base.prune(1) == [] and base.versions() == [1]
    with pytest.raises(ValueError, match="at least 1"):
        base.prune(0)


def test_files_differ_when_a_file_was_written_again_with_the_same_size(base, source):
    base.add(source)
    before = base.files(1)
    assert base.files(1) == before
    held = FlatStore.root if not isinstance(base, Local) else base.directory
    [path] = [path for path in held.rglob("*saved_model.pb")]
    path.write_bytes(b"GRAPH")
    os.utime(path, (time.time() + 5, time.time() + 5))
    assert base.files(1) != before


# what is complete


def test_an_export_is_complete(source):
    assert incomplete(source) is None


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        (DATA, b"w" * 12, f"{DATA} has 12 of 90,112 bytes: still being copied?"),
        (DATA, b"w" * 90_113, f"{DATA} has 90,113 bytes where 90,112 were exported"),
        (DATA, None, f"{DATA} is missing"),
        ("saved_model.pb", None, "saved_model.pb is missing"),
        (FACTS, None, f"{FACTS} is missing"),
        (FACTS, b"", f"{FACTS} is cut short"),
        (FACTS, b'{"files": {"saved_mo', f"{FACTS} is cut short"),
        (FACTS, b"\xff", f"{FACTS} is cut short"),
        (FACTS, b"[]", "does not list the version's files"),
        (FACTS, b"{}", "does not list the version's files"),
        (FACTS, b'{"files": {"saved_model.pb": "5"}}', "does not list the version's files"),
    ],
)
def test_what_a_version_lacks_is_said_in_words(source, name, data, words):
    (source / name).unlink() if data is None else (source / name).write_bytes(data)
    assert words in (incomplete(source) or "")


def test_a_directory_that_is_not_there_is_incomplete(tmp_path):
    assert "missing" in (incomplete(tmp_path / "none") or "")


# local paths


def test_only_numbers_that_a_request_can_hold_are_versions(tmp_path):
    for name in ("3", "10", "0042", "7.withdrawn", ".partial-8", "notes", "-1", "²", str(2**63)):
        (tmp_path / name).mkdir()
    (tmp_path / "5").write_text("a file")
    base = open_base(str(tmp_path))
    assert base.versions() == [3, 10, 42]
    assert base.fetch(42, tmp_path / "unused") == tmp_path / "0042"


def test_a_local_version_is_served_where_it_is(source, tmp_path):
    base = open_base(str(tmp_path / "base"))
    base.add(source)
    assert base.fetch(1, tmp_path / "unused") == tmp_path / "base" / "1"
    assert not (tmp_path / "unused").exists()


def test_another_user_may_read_a_published_version(source, tmp_path):
    open_base(str(tmp_path / "base")).add(source)
    assert (tmp_path / "base" / "1").stat().st_mode & 0o055 == 0o055


def test_eight_publishers_at_one_moment_take_eight_numbers(source, tmp_path):
    together, taken = threading.Barrier(8), []

    def publish():
        base = open_base(str(tmp_path / "base"))
        together.wait()
        taken.append(base.add(source))

    threads = [threading.Thread(target=publish) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == list(range(1, 9))
    assert sorted(entry.name for entry in (tmp_path / "base").iterdir()) == sorted(str(number) for number in taken)


def test_what_a_killed_publisher_left_is_removed_after_a_day_and_not_before(source, tmp_path):
    base = open_base(str(tmp_path))
    base.add(source)
    for name, age in ((".partial-old", 25), (".partial-new", 23)):
        (tmp_path / name).mkdir()
        then = time.time() - age * 3600
        os.utime(tmp_path / name, (then, then))
    assert base.prune(3) == [".partial-old"]
    assert (tmp_path / ".partial-new").exists()


def test_a_linked_version_is_removed_without_what_it_links_to(source, tmp_path):
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "1").symlink_to(source)
    base = open_base(str(tmp_path / "base"))
    assert base.versions() == [1]
    base.remove(1)
    assert base.versions() == [] and incomplete(source) is None


def test_a_local_path_does_not_import_beam():
    # Where it is not installed, "not imported" would say nothing.
    assert find_spec("apache_beam")
    script = (
        "import sys; from serving.storage.open import open_base; open_base('file:///tmp'); open_base('x').versions()"
    )
    check = f"{script}; print('imported', 'apache_beam' in sys.modules, 'tensorflow' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", check], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["imported", "False", "False"]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("file://models/pause", "names the host 'models'"),
        ("nothing://bucket/pause", "nothing://bucket/pause cannot be used: Protocol not known"),
        ("flat://bucket/pa*se", "no base path"),
    ],
)
def test_a_path_that_cannot_hold_versions_is_said_in_words(path, words):
    with pytest.raises(StorageError, match=r"^[^\n]*$") as refused:
        open_base(path)
    assert words in str(refused.value)
