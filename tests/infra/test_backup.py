"""The blocks of docs/operations.md that back up and restore, run as they stand there, under a writer."""

import itertools
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from real_servers import available

from index.base import Spec
from index.document import Document
from index.open import open_index
from infra.local.processes import Unavailable
from search.feedback.store import Answer, open_feedback

ROOT = Path(__file__).parents[2]
MODEL, DIMENSION, BATCH = "0" * 16, 64, 20
PLAIN = 'es() { curl --fail --silent --show-error --header "Content-Type: application/json" "$@"; }\n'


def block(name):
    text = (ROOT / "docs" / "operations.md").read_text()
    (found,) = re.findall(rf"<!-- tried: {name} -->\n```sh\n(.*?)```", text, re.DOTALL)
    return found


def program(name):
    def find():
        if shutil.which(name) is None:
            raise Unavailable(f"there is no `{name}` here")

    available(find)


def run(script, **variables):
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, **{name: str(value) for name, value in variables.items()}}
    command = ["bash", "-euo", "pipefail", "-c", script]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def documents(batch):
    vectors = np.random.default_rng(batch).normal(size=(BATCH, DIMENSION)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    texts = {"name": "Acme", "description": "forges anvils " * 40, "model": MODEL, "text_hash": "0" * 16}
    return [Document(f"c{batch}-{row}", 1, embedding=vector, **texts) for row, vector in enumerate(vectors)]


def answer(number):
    return Answer(f"list {number}", number, "ann", MODEL, "c0-0", None, f"c{number}-1", "similar", 1)


def write_for_ever(url):
    """Says each number once it is in the index and in the feedback, and tidies up all the time."""
    index, feedback = open_index(url, create=Spec(MODEL, DIMENSION)), open_feedback(url)
    for batch in itertools.count():
        index.write(documents(batch))
        feedback.add([answer(batch)])
        if batch % 5 == 4:
            index.optimise()
        sys.stdout.write(f"{batch}\n")
        sys.stdout.flush()


def everything(url):
    return {one.id: one.embedding for page in open_index(url).scan() for one in page}


@pytest.fixture
def writer(tmp_path):
    """Of an index of its own, in a process of its own; asked for the newest number that it has said."""
    url, said = str(tmp_path / "index"), []
    script = (
        "import sys; sys.path[:0] = ['tests/infra', 'tests', '.']\n"
        f"from test_backup import write_for_ever\nwrite_for_ever({url!r})"
    )
    with subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
        listening = threading.Thread(target=lambda: said.extend(int(line) for line in running.stdout or ()))
        listening.start()
        try:
            yield url, running, lambda: _last(said, running)
        finally:
            running.kill()
            listening.join()


def _last(said, running):
    """The newest number that was said, once there are ten more than before."""
    before = len(said)
    while len(said) < before + 10:
        assert running.poll() is None
        threading.Event().wait(0.05)
    return said[-1]


def test_an_embedded_index_is_copied_under_a_writer_and_put_back(writer, tmp_path):
    program("flock")
    index, running, newest = writer
    secret = Path(f"{index}-secret")
    secret.write_bytes(b"s" * 32)
    secret.chmod(0o600)
    for number in range(3):
        copied = tmp_path / f"backup{number}"
        copied.mkdir()
        known = newest()
        run(block("copy"), INDEX=index, BACKUP=copied)
        assert running.poll() is None
        kept = everything(str(copied / "index"))
        # Whole batches, all that were acknowledged before it began, vectors as they were sent.
        assert len(kept) % BATCH == 0 and len(kept) >= (known + 1) * BATCH
        for one in documents(known):
            assert kept[one.id] == pytest.approx(one.embedding, abs=1e-6)
        (copied / "index-feedback.jsonl").symlink_to(copied / "feedback.jsonl")
        assert {one.shown for one in open_feedback(str(copied / "index")).scan()} >= {
            f"list {n}" for n in range(known + 1)
        }
    running.kill()
    running.wait()
    assert len(everything(index)) > len(kept)  # it wrote on
    for name in (f"{index}-feedback.jsonl", f"{index}-secret"):
        Path(name).unlink()

    told = run(block("put back"), INDEX=index, BACKUP=copied)

    assert f"companies       {len(kept):,}" in told
    assert everything(index).keys() == kept.keys()
    assert secret.read_bytes() == b"s" * 32 and secret.stat().st_mode & 0o777 == 0o600
    assert len(list(open_feedback(index).scan())) > known
    assert len(open_index(index).write(documents(10**6))) == BATCH  # and it takes more
    assert len(everything(index)) == len(kept) + BATCH


def test_an_elasticsearch_index_is_snapshot_under_a_writer_and_restored(elasticsearch_server):
    program("curl")
    url = f"{elasticsearch_server.address}/snapshots"
    index, feedback = open_index(url, create=Spec(MODEL, DIMENSION)), open_feedback(url)
    feedback.add([answer(1)])
    acknowledged, stop = [], threading.Event()

    def write():
        for batch in itertools.count():
            if stop.is_set():
                return
            index.write(documents(batch))
            acknowledged.append(batch)

    writing = threading.Thread(target=write)
    writing.start()
    try:
        while len(acknowledged) < 5:
            threading.Event().wait(0.05)
        before = acknowledged[-1]
        where = {"ES": elasticsearch_server.address, "NAME": "first"}
        # Its own alias: the server is shared with other tests.
        taken = run(PLAIN + block("snapshot").replace("companies", "snapshots"), **where)
        assert '"state":"SUCCESS"' in taken
        while acknowledged[-1] < before + 3:
            threading.Event().wait(0.05)
    finally:
        stop.set()
        writing.join()
    whole = everything(url)
    assert len(whole) == (acknowledged[-1] + 1) * BATCH

    told = run(PLAIN + block("restore").replace("companies", "snapshots"), **where)

    assert f"{url} (snapshots-{MODEL}-1)" in told
    restored = everything(url)
    assert {one.id for batch in range(before + 1) for one in documents(batch)} <= restored.keys() < whole.keys()
    assert all((restored[id] == whole[id]).all() for id in restored)
    assert [one.shown for one in feedback.scan()] == ["list 1"]
    assert len(open_index(url).write(documents(10**6))) == BATCH  # the alias to write by came back too
