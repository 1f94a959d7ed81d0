"""Servers beside a program: ready when said to be, and gone with it however it ends."""

import json
import os
import select
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from commands import refusal

from infra.local import distribution, processes
from infra.local.__main__ import main
from infra.local.distribution import fetch, find_java
from infra.local.processes import NotStarted, Process, Unavailable, new_folder

ROOT = Path(__file__).parents[2]
# Writes its number down and goes on until it is ended; so does its child.
SERVER = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
with open("started.new", "w") as file:
    file.write(f"{os.getpid()} {child.pid}")
os.rename("started.new", "started")
print("up", flush=True)
time.sleep(600)
"""
OWNER = """
import sys, time
from pathlib import Path
from infra.local import processes
processes.FOLDER = Path(sys.argv[1])
folder = processes.new_folder("demo")
script = f"import os; os.chdir({str(folder)!r})\\n" + sys.argv[2]
server = processes.Process("demo", [sys.executable, "-c", script], folder)
started = folder / "started"
print(server.wait_until(lambda: started.exists() and started.read_text()), flush=True)
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    for module in (processes, distribution):
        monkeypatch.setattr(module, "FOLDER", tmp_path / "local")
    return tmp_path / "local"


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def start(script: str) -> tuple[Process, Path]:
    own = new_folder("demo")
    return Process("demo", [sys.executable, "-c", f"import os; os.chdir({str(own)!r})\n{script}"], own), own


def test_a_server_is_ready_when_asked_and_its_folder_goes_with_it(folder):
    server, own = start(SERVER)
    with server:
        text = server.wait_until(lambda: (own / "started").exists() and (own / "started").read_text())
        pids = [int(pid) for pid in text.split()]
        assert not any(map(gone, pids))
    assert all(map(gone, pids)) and list(folder.iterdir()) == []
    server.stop()  # a second time is nothing


def test_a_server_that_is_restarted_is_another_process_in_the_same_folder(folder):
    server, own = start(SERVER)
    with server:
        started = own / "started"
        first = server.wait_until(lambda: started.exists() and started.read_text())
        (own / "kept").touch()
        server.kill_and_restart()
        second = server.wait_until(lambda: started.read_text() != first and started.read_text())
        pids = [int(pid) for pid in second.split()]
        assert all(gone(int(pid)) for pid in first.split()) and not any(map(gone, pids))
        assert (own / "kept").exists()
    assert all(map(gone, pids)) and list(folder.iterdir()) == []


def test_a_server_that_ends_early_is_told_with_its_last_words(folder):
    server, _ = start("import time; print('no such disk', flush=True); time.sleep(0.5); raise SystemExit(3)")
    with pytest.raises(NotStarted, match="demo ended: no such disk"):
        server.wait_until(lambda: None)
    assert list(folder.iterdir()) == []


def test_a_server_that_is_never_ready_is_ended(folder):
    server, _ = start(SERVER)
    with pytest.raises(NotStarted, match="not ready after 2 s: up"):
        server.wait_until(lambda: None, seconds=2)
    assert list(folder.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_a_server_ends_with_a_program_that_is_killed(folder):
    command = [sys.executable, "-c", OWNER, str(folder), SERVER]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as owner:
        pids = [int(pid) for pid in owner.stdout.readline().split()]
        keeper = int(Path(f"/proc/{pids[0]}/stat").read_text().rpartition(")")[2].split()[1])
        assert len(pids) == 2 and not any(map(gone, pids))
        watched = os.pidfd_open(keeper)
        os.kill(owner.pid, signal.SIGKILL)
    assert select.select([watched], [], [], 30)[0]  # its keeper is the last to go
    os.close(watched)
    assert all(map(gone, pids)) and list(folder.iterdir()) == []


# what Elasticsearch needs


def jdk(path: Path, version: str, modules: set[str]) -> Path:
    path.mkdir(parents=True)
    (path / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{" ".join(sorted(modules))}"\n')
    return path


def test_a_jdk_that_is_old_or_cut_down_is_passed_over(tmp_path, monkeypatch):
    monkeypatch.setattr(distribution, "JVMS", (f"{tmp_path}/jvm/*",))
    monkeypatch.delenv("ES_JAVA_HOME", raising=False)
    monkeypatch.setenv("JAVA_HOME", str(jdk(tmp_path / "old", "17.0.1", distribution.MODULES)))
    jdk(tmp_path / "jvm" / "z-cut", "25.0.1", {"java.base"})
    with pytest.raises(Unavailable, match=r"JDK 21 or newer.*ES_JAVA_HOME.*of your own"):
        find_java()
    whole = jdk(tmp_path / "jvm" / "a-whole", "25", distribution.MODULES | {"java.base"})
    assert find_java() == whole


def test_without_maven_it_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("ES_JAVA_HOME", str(jdk(tmp_path / "jdk", "25", distribution.MODULES)))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="no `mvn` here: install Maven"):
        fetch()


def fake_maven(folder: Path, script: str) -> None:
    folder.mkdir()
    (folder / "mvn").write_text(f"#!{sys.executable}\nimport sys, shutil\n{script}\n")
    (folder / "mvn").chmod(0o755)


def test_what_maven_cannot_fetch_is_told_and_nothing_is_kept(monkeypatch, tmp_path, folder):
    fake_maven(tmp_path / "bin", "sys.exit('no route')")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(Unavailable, match="no route"):
        fetch()
    assert [path.suffix for path in folder.iterdir()] == [".lock"]


def test_what_maven_fetched_is_unpacked_once_and_can_be_executed(monkeypatch, tmp_path):
    archive = tmp_path / "es.zip"
    with zipfile.ZipFile(archive, "w") as content:
        entry = zipfile.ZipInfo(f"elasticsearch-{distribution.VERSION}/bin/elasticsearch")
        entry.external_attr = 0o100755 << 16
        content.writestr(entry, "#!/bin/sh")
    output = "next(a for a in sys.argv if a.startswith('-DoutputDirectory=')).partition('=')[2]"
    fake_maven(tmp_path / "bin", f"shutil.copy({str(archive)!r}, {output} + '/es.zip')")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    home = fetch()
    assert os.access(home / "bin" / "elasticsearch", os.X_OK)
    monkeypatch.setenv("PATH", "")
    assert fetch() == home


@pytest.mark.parametrize(("arguments", "said"), [([], "required"), (["up"], "required"), (["up", "oracle"], "oracle")])
def test_a_mistake_is_answered_with_one_line(capsys, arguments, said):
    assert said in refusal(capsys, main, *arguments)


def test_a_command_that_ends_by_itself_leaves_its_code_and_no_words_of_its_keeper(folder):
    own = new_folder("demo")
    given = json.dumps({"command": [sys.executable, "-c", "exit(3)"], "log": str(own / "log"), "folder": str(own)})
    command = [sys.executable, "-m", "infra.local.keeper", given]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as keeper:
        assert (keeper.wait(60), keeper.stderr.read()) == (3, "")
    assert not own.exists()
