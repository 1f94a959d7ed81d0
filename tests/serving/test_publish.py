import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from commands import answer, refusal
from flat_store import FlatStore
from version_folders import DATA, FACTS, write_version

from serving import publish
from serving.publish import main
from serving.storage.open import open_base

ROOT = Path(__file__).parents[2]


@pytest.fixture
def source(tmp_path) -> Path:
    return write_version(tmp_path / "source")


@pytest.fixture
def unproven(monkeypatch):
    """Takes every version for a good one, for tests that are about what follows; lists what was to be proven."""
    proven: list[Path] = []
    monkeypatch.setattr(publish, "require_proof", proven.append)
    return proven


@pytest.fixture(params=["local", "object store"])
def to(request, tmp_path) -> str:
    if request.param == "local":
        return str(tmp_path / "models" / "pause")
    (tmp_path / "objects").mkdir()
    return FlatStore.open_in(tmp_path / "objects")


def names(base: Path) -> list[str]:
    return sorted(entry.name for entry in base.iterdir())


# the real proof, on a real export


def test_an_export_is_published_and_still_proves_itself_there(exports, tmp_path, capsys):
    from serving.server.models.loaded import prove

    code, stdout, stderr = answer(capsys, main, "--from", exports[0], "--to", tmp_path / "base")
    assert (code, stdout, stderr) == (0, f"{tmp_path}/base/1\n", "")
    prove(tmp_path / "base" / "1")
    assert names(tmp_path / "base") == ["1"]


def test_a_version_with_wrong_golden_vectors_is_not_published(exports, tmp_path, capsys):
    wrong = write_version(tmp_path / "wrong", {p: (exports[0] / p).read_bytes() for p in listed(exports[0])})
    facts = json.loads((exports[0] / FACTS).read_text())
    facts["golden"][2]["embedding"][0] += 0.5
    (wrong / FACTS).write_text(json.dumps(facts))
    said = refusal(capsys, main, "--from", wrong, "--to", tmp_path / "base")
    assert "golden text 2" in said and "nothing was published" in said
    assert not (tmp_path / "base").exists()


def test_a_corrupt_model_of_the_right_size_is_not_published(exports, tmp_path, capsys):
    files = {p: (exports[0] / p).read_bytes() for p in listed(exports[0])}
    files["saved_model.pb"] = b"\xff" * len(files["saved_model.pb"])
    corrupt = write_version(tmp_path / "corrupt", files)
    (corrupt / FACTS).write_bytes((exports[0] / FACTS).read_bytes())
    assert "saved_model.pb is damaged" in refusal(capsys, main, "--from", corrupt, "--to", tmp_path / "base")
    assert not (tmp_path / "base").exists()


def listed(version: Path) -> dict[str, int]:
    return json.loads((version / FACTS).read_text())["files"]


# where it comes from


def test_a_base_path_stands_for_its_newest_version(unproven, tmp_path, capsys):
    for number in (9, 10):
        write_version(tmp_path / "exports" / str(number))
    assert answer(capsys, main, "--from", tmp_path / "exports", "--to", tmp_path / "base")[0] == 0
    assert unproven == [tmp_path / "exports" / "10"]


@pytest.mark.parametrize("name", ["", "/1"])
def test_a_version_comes_from_an_object_store_as_well(unproven, source, tmp_path, capsys, name):
    (tmp_path / "objects").mkdir()
    store = FlatStore.open_in(tmp_path / "objects")
    open_base(store).add(source)
    code, stdout, _ = answer(capsys, main, "--from", store + name, "--to", tmp_path / "base")
    assert (code, stdout) == (0, f"{tmp_path}/base/1\n")
    assert (tmp_path / "base" / "1" / DATA).read_bytes() == (source / DATA).read_bytes()
    assert not unproven[0].exists()  # the copy it was proven on is gone


def test_a_withdrawn_version_can_be_published_again(unproven, source, tmp_path, capsys):
    base = tmp_path / "base"
    for _ in range(2):
        main(["--from", str(source), "--to", str(base)])
    main(["--rollback", "--to", str(base)])
    code, stdout, _ = answer(capsys, main, "--from", base / "2.withdrawn", "--to", base)
    assert (code, stdout) == (0, f"{base}/3\n")


def test_an_incomplete_version_is_refused_before_it_is_loaded(unproven, source, tmp_path, capsys):
    (source / DATA).write_bytes(b"w" * 12)
    assert f"{DATA} has 12 of 90,112 bytes" in refusal(capsys, main, "--from", source, "--to", tmp_path / "base")
    assert unproven == [] and not (tmp_path / "base").exists()


# where it goes


def test_each_publication_takes_the_next_number_and_the_last_three_are_kept(unproven, source, to, capsys):
    said = [answer(capsys, main, "--from", source, "--to", to) for _ in range(5)]
    assert [stdout for _, stdout, _ in said] == [f"{to}/{number}\n" for number in range(1, 6)]
    assert [stderr for _, _, stderr in said] == ["", "", "", f"removed {to}/1\n", f"removed {to}/2\n"]
    assert open_base(to).versions() == [3, 4, 5]


def test_keep_1_leaves_the_new_version_alone(unproven, source, to, capsys):
    for _ in range(3):
        assert answer(capsys, main, "--from", source, "--to", to, "--keep", 1)[0] == 0
    assert open_base(to).versions() == [3]


def test_publishers_at_one_moment_all_succeed_with_numbers_of_their_own(unproven, source, tmp_path, capsys):
    together, codes = threading.Barrier(4), []

    def run():
        together.wait()
        codes.append(main(["--from", str(source), "--to", str(tmp_path / "base"), "--keep", "1"]))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    said = capsys.readouterr()
    assert codes == [0] * 4, said.err
    assert sorted(said.out.split()) == [f"{tmp_path}/base/{number}" for number in range(1, 5)]
    assert names(tmp_path / "base") == ["4"]


def test_a_number_is_not_given_twice_where_its_version_is_removed_before_a_slow_publisher_takes_it(
    unproven, source, tmp_path, monkeypatch
):
    """It has seen an empty base path; until it renames, another publishes twice and keeps the last one."""
    looked, rename = threading.Event(), os.rename

    def slow(*paths):
        if threading.current_thread().name == "slow":
            looked.set()
            other.join(2)  # where nothing holds it up
        rename(*paths)

    def publish(times):
        for _ in range(times):
            main(["--from", str(source), "--to", str(tmp_path / "base"), "--keep", "1"])

    def publish_meanwhile():
        looked.wait()
        publish(2)

    monkeypatch.setattr(os, "rename", slow)
    other = threading.Thread(target=publish_meanwhile)
    one = threading.Thread(target=publish, args=(1,), name="slow")
    for thread in (other, one):
        thread.start()
    for thread in (other, one):
        thread.join()
    assert names(tmp_path / "base") == ["3"]


def test_ctrl_c_in_the_middle_of_a_copy_leaves_nothing(unproven, source, tmp_path, capsys, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    main(["--from", str(source), "--to", str(tmp_path / "base")])
    with monkeypatch.context() as patched:
        patched.setattr("serving.storage.local.pour", interrupt)
        assert answer(capsys, main, "--from", source, "--to", tmp_path / "base") == (130, "", "interrupted\n")
    assert names(tmp_path / "base") == ["1"]
    assert main(["--from", str(source), "--to", str(tmp_path / "base")]) == 0
    assert names(tmp_path / "base") == ["1", "2"]


def test_a_terminated_publisher_tidies_up(source, tmp_path):
    """The real command, but for its proof and its copying, which waits on a pipe until the signal comes."""
    script = (
        "import os, runpy, sys, serving.storage.local\n"
        "def pour(reader, writer, copied=None):\n"
        "    print('copying', flush=True)\n"
        "    os.read(0, 1)\n"
        "serving.storage.local.pour = pour\n"
        "import types; loaded = types.ModuleType('loaded'); loaded.prove = lambda directory: None\n"
        "sys.modules.update({'serving.server.models.loaded': loaded, 'common.runtime': types.ModuleType('runtime')})\n"
        "runpy.run_module('serving.publish', run_name='__main__')\n"
    )
    command = [sys.executable, "-c", script, "--from", str(source), "--to", str(tmp_path / "base")]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout.readline() == "copying\n"
        assert re.fullmatch(r"\.partial-\w+", names(tmp_path / "base")[0])
        run.send_signal(signal.SIGTERM)
        _, stderr = run.communicate(timeout=30)
    assert (run.returncode, stderr) == (130, "interrupted\n")
    assert names(tmp_path / "base") == []


# and back


def test_rolling_back_twice_goes_back_two_and_then_refuses(unproven, source, to, capsys):
    for _ in range(3):
        main(["--from", str(source), "--to", to])
    said = [answer(capsys, main, "--rollback", "--to", to)[1] for _ in range(2)]
    assert said == [
        f"withdrew 3; the newest version is now {to}/2\n",
        f"withdrew 2; the newest version is now {to}/1\n",
    ]
    assert open_base(to).versions() == [1]
    assert "no complete version older than 1" in refusal(capsys, main, "--rollback", "--to", to)
    assert open_base(to).versions() == [1]
    assert answer(capsys, main, "--from", source, "--to", to)[1] == f"{to}/4\n"


def test_a_rollback_passes_over_versions_that_are_not_complete(unproven, source, to, capsys):
    base = open_base(to)
    for _ in range(3):
        base.add(source)
    held = FlatStore.root if "://" in to else Path(to)
    [path] = [path for path in held.rglob("*saved_model.pb") if re.search(r"(^|/|%2F)2(/|%2F)saved", str(path))]
    path.unlink()
    assert base.incomplete(2) is not None
    assert answer(capsys, main, "--rollback", "--to", to)[1] == f"withdrew 2 and 3; the newest version is now {to}/1\n"
    assert base.versions() == [1]


def test_an_empty_base_path_cannot_be_rolled_back(to, capsys):
    assert "holds no version" in refusal(capsys, main, "--rollback", "--to", to)


# mistakes


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--from", "{source}"], "--to"),
        (["--to", "{base}"], "either --from"),
        (["--from", "{source}", "--to", "{base}", "--rollback"], "either --from"),
        (["--to", "{base}", "--rollback", "--keep", "2"], "either --from"),
        (["--from", "{source}", "--to", "{base}", "--keep", "0"], "'0' is not a number of versions"),
        (["--from", "{source}", "--to", "{base}", "--keep", "many"], "'many' is not a number of versions"),
        (["--from", "{source}", "--to", "{base}", "--kep", "2"], "--kep"),
        (["--from", "{base}/none", "--to", "{base}"], "no such directory"),
        (["--from", "{empty}", "--to", "{base}"], "neither a SavedModel nor numbered versions"),
        (["--from", "{source}", "--to", "nothing://bucket"], "nothing://bucket cannot be used"),
        (["--from", "nothing://bucket", "--to", "{base}"], "nothing://bucket cannot be used"),
        (["--from", "{source}", "--to", "{source}/saved_model.pb"], "saved_model.pb cannot be used"),
        (["--rollback", "--to", "{source}/saved_model.pb"], "saved_model.pb cannot be used"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(unproven, source, tmp_path, capsys, arguments, words):
    (tmp_path / "empty").mkdir()
    places = {"source": source, "base": tmp_path / "base", "empty": tmp_path / "empty"}
    assert words in refusal(capsys, main, *[argument.format(**places) for argument in arguments])
    assert not (tmp_path / "base").exists()


def test_a_store_that_fails_is_one_line_and_exit_code_2(unproven, source, tmp_path, capsys):
    (tmp_path / "objects").mkdir()
    to = FlatStore.open_in(tmp_path / "objects")
    FlatStore.fail_after = 6
    assert "quota used up" in refusal(capsys, main, "--from", source, "--to", to)
    assert FlatStore.keys() == []


def test_old_versions_that_cannot_be_removed_do_not_hide_that_the_new_one_is_published(
    unproven, source, tmp_path, capsys, monkeypatch
):
    def refuse(self, keep):
        raise PermissionError(13, os.strerror(13))

    monkeypatch.setattr("serving.storage.base.Base.prune", refuse)
    code, stdout, stderr = answer(capsys, main, "--from", source, "--to", tmp_path / "base")
    assert (code, stdout) == (2, f"{tmp_path}/base/1\n")
    assert "version 1 is published, but older ones could not be removed" in stderr and stderr.count("\n") == 1


def test_the_help_has_an_example(capsys):
    code, stdout, _ = answer(capsys, main, "--help")
    assert code == 0 and "python -m serving.publish --from build/" in stdout
