"""Base paths in Google Cloud Storage, by its own package, in a server on this machine that speaks its protocol."""

import json
import os
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

import fsspec
import pytest
from commands import answer, refusal
from embedded import EmbeddedServer
from real_servers import running
from version_folders import FACTS, FILES, content, write_version
from waiting import wait_until

from infra.local.fake_gcs import FakeGcs
from serving import publish
from serving.client import EmbeddingClient
from serving.publish import main
from serving.storage.base import StorageError
from serving.storage.open import open_base

ROOT = Path(__file__).parents[2]
# gcsfs hands a megabyte and more to its HTTP library in one piece, on purpose: the event loop serves nobody else.
pytestmark = pytest.mark.filterwarnings("ignore:Sending a large body directly:ResourceWarning")
BLOCK = 6 << 20  # bytes; from 5 MiB on a file goes there in parts


@pytest.fixture(scope="module")
def server():
    with running(FakeGcs) as started:
        yield started


@pytest.fixture
def bucket(server, monkeypatch):
    """An empty one, which this process and those it starts reach without an account."""
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.address)
    monkeypatch.setenv("FSSPEC_GS_TOKEN", "anon")
    monkeypatch.setitem(fsspec.config.conf, "gs", {"token": "anon"})  # the environment is read with the import
    name = f"bucket-{uuid.uuid4().hex}"
    server.make_bucket(name)
    return f"gs://{name}"


@pytest.fixture
def to(bucket) -> str:
    return f"{bucket}/models/pause"


@pytest.fixture
def source(tmp_path) -> Path:
    return write_version(tmp_path / "source", {**FILES, "variables/large": os.urandom(BLOCK)})


@pytest.fixture
def unproven(monkeypatch):
    monkeypatch.setattr(publish, "require_proof", lambda directory: None)


def test_what_is_published_is_listed_fetched_rolled_back_and_pruned(to, source, tmp_path, capsys, unproven):
    for number in (1, 2):
        assert answer(capsys, main, "--from", source, "--to", to) == (0, f"{to}/{number}\n", "")
    base = open_base(to)
    assert base.versions() == [1, 2] and base.incomplete(2) is None
    assert content(base.fetch(2, tmp_path / "fetched")) == content(source)
    said = answer(capsys, main, "--rollback", "--to", to)[1]
    assert said == f"withdrew 2; the newest version is now {to}/1\n"
    assert base.versions() == [1] and base.files(2) == {}
    code, stdout, stderr = answer(capsys, main, "--from", source, "--to", to, "--keep", "1")
    assert (code, stdout) == (0, f"{to}/3\n")
    assert sorted(stderr.splitlines()) == [f"removed {to}/{name}" for name in ("1", "2.withdrawn")]
    assert {name.partition("/")[0] for name in base.store.files()} == {"3"}  # no claim and no partial copy is left


def test_every_byte_of_a_large_file_is_reported(to, source):
    reported = []
    open_base(to).add(source, reported.append)
    assert sum(reported) == sum(len(data) for data in content(source).values())


def test_a_listing_sees_what_another_process_writes_and_removes_at_once(to, source, server):
    base = open_base(to)
    assert base.versions() == []
    acts = {"add": [1], "remove": []}
    for act, versions in acts.items():
        argument = f"Path({str(source)!r})" if act == "add" else "1"
        script = (
            f"from pathlib import Path; from serving.storage.open import open_base as o; o({to!r}).{act}({argument})"
        )
        subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, timeout=120)
        assert base.versions() == versions


def test_files_differ_when_an_object_was_written_again_with_the_same_size(to, source):
    base = open_base(to)
    base.add(source)
    before = base.files(1)
    assert base.files(1) == before
    base.store.write("1/saved_model.pb", b"GRAPH")
    after = base.files(1)
    assert after != before
    assert after["saved_model.pb"].changed > before["saved_model.pb"].changed > time.time() - 60


def test_two_publishers_at_one_moment_take_two_numbers_and_mix_no_files(to, tmp_path, monkeypatch):
    monkeypatch.setattr("serving.storage.remote.PAUSE", 0.05)
    sources = [write_version(tmp_path / f"s{mark}", {**FILES, "saved_model.pb": b"graph%d" % mark}) for mark in (0, 1)]
    together, taken = threading.Barrier(2), {}

    def publish_one(source):
        base = open_base(to)
        together.wait()
        taken[base.add(source)] = source

    threads = [threading.Thread(target=publish_one, args=[source]) for source in sources]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    base = open_base(to)
    assert base.versions() == sorted(taken) and len(taken) == 2
    for number, source in taken.items():
        assert content(base.fetch(number, tmp_path / "fetched")) == content(source)


def test_folders_a_console_makes_and_keys_that_point_outside(to, bucket, source, tmp_path):
    base = open_base(to)
    base.add(source)
    console = fsspec.filesystem("gs", use_listings_cache=False)
    console.pipe_file(f"{to}/7/", b"")
    assert base.versions() == [1]
    console.pipe_file(f"{to}/1/../../outside", b"hostile")
    with pytest.raises(StorageError, match="outside"):
        base.fetch(1, tmp_path / "deep" / "fetched")
    assert list((tmp_path / "deep").iterdir()) == []


@pytest.mark.parametrize("act", [["--rollback"], ["--from", "{source}"]])
def test_a_bucket_that_is_not_there_is_one_line(server, bucket, source, capfd, unproven, act):
    said = refusal(capfd, main, *[word.format(source=source) for word in act], "--to", "gs://never-made/pause")
    assert said == "gs://never-made/pause/ cannot be used: there is no such bucket or object (b/never-made/o)"


FORKED = """
import os, sys
from pathlib import Path
from serving.storage.open import open_base

base = open_base(sys.argv[1])
assert base.versions() == []
if child := os.fork():
    _, status = os.waitpid(child, 0)
    assert status == 0, status
    assert base.versions() == [1]
    print("both")
else:
    base.add(Path(sys.argv[2]))
    os._exit(0 if base.versions() == [1] and open_base(sys.argv[1]).versions() == [1] else 1)
"""


def test_a_process_that_forked_does_not_hang(to, source):
    command = [sys.executable, "-c", FORKED, to, str(source)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (run.stdout, run.stderr) == ("both\n", "")


def test_a_store_is_asked_without_beam(to):
    script = f"import sys; from serving.storage.open import open_base; print(open_base({to!r}).versions())"
    check = f"{script}; print('gcsfs' in sys.modules, 'apache_beam' in sys.modules, 'tensorflow' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", check], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout == "[]\nTrue False False\n"


def test_a_server_that_polls_a_bucket_serves_what_is_published_and_goes_back(to, exports, capsys, unproven):
    prints = [json.loads((one / FACTS).read_text())["contract"]["fingerprint"] for one in exports]
    assert main(["--from", str(exports[0]), "--to", to]) == 0
    with (
        EmbeddedServer(to, "--xla_cpu_compilation_enabled=false", rest=False) as embedded,
        EmbeddingClient([embedded.address]) as client,
    ):
        assert client.embed(["bank"])[1] == [prints[0]]
        assert main(["--from", str(exports[1]), "--to", to]) == 0
        wait_until(lambda: client.embed(["bank"])[1] == [prints[1]], embedded.process, 60)
        assert main(["--rollback", "--to", to, "--serving", embedded.address]) == 0
        assert client.embed(["bank"])[1] == [prints[0]]
    capsys.readouterr()
    assert "Traceback" not in embedded.log
