"""What the file system of a store does by itself, held to what base paths need; its listings, its time, its end."""

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import fsspec
import pytest
from flat_store import FlatStore
from fsspec.asyn import AsyncFileSystem
from version_folders import FACTS, write_version
from waiting import wait_until

from serving.storage import object_store
from serving.storage.base import StorageError
from serving.storage.open import open_base

ROOT = Path(__file__).parents[2]


@pytest.fixture
def store(tmp_path):
    (tmp_path / "objects").mkdir()
    return open_base(FlatStore.open_in(tmp_path / "objects"))


class SilentStore(AsyncFileSystem):
    """Takes a question and never answers it."""

    protocol = "silent"
    asked: list[str]
    ended: list[str]

    async def _find(self, path, **options):
        asked, ended = self.asked, self.ended  # those of the test that asks, even where its call ends within the next
        asked.append(path)
        try:
            await asyncio.sleep(600)
        finally:
            ended.append(path)


@pytest.fixture
def silent():
    SilentStore.asked, SilentStore.ended = [], []
    fsspec.register_implementation("silent", SilentStore, clobber=True)
    return open_base("silent://bucket/models/pause")


# listings


def write_by_another(name: str) -> None:
    (FlatStore.root / f"bucket/models/pause/{name}".replace("/", "%2F")).write_text("")


def test_a_listing_is_never_the_former_one(store, monkeypatch):
    monkeypatch.setattr(FlatStore, "invalidate_cache", lambda self, path=None: None)
    assert store.versions() == []
    write_by_another("1/saved_model.pb")
    assert store.versions() == [1]


def test_nor_where_a_package_keeps_listings_unasked(store, monkeypatch):
    monkeypatch.setattr(store.store.system, "dircache", {})
    assert store.versions() == []
    write_by_another("1/saved_model.pb")
    assert store.store.system.dircache  # the premise
    assert store.versions() == [1]


@pytest.mark.parametrize(
    "told",
    [
        {"mtime": 1_700_000_000.25},
        {"mtime": datetime(2023, 11, 14, 22, 13, 20, 250_000, tzinfo=UTC), "updated": "2023-11-14T22:13:20.250Z"},
        {"updated": "2023-11-14T22:13:20.250Z"},
        {"LastModified": datetime(2023, 11, 14, 22, 13, 20, 250_000, tzinfo=UTC)},
        {"last_modified": datetime(2023, 11, 14, 22, 13, 20, 250_000, tzinfo=UTC)},
    ],
)
def test_the_time_of_a_change_is_the_stores_own_whatever_its_package_calls_it(store, monkeypatch, told):
    write_by_another("1/saved_model.pb")
    monkeypatch.setattr(FlatStore, "_entry", lambda self, key: {"name": key, "size": 5, "type": "file", **told})
    assert store.files(1)["saved_model.pb"] == (5, 1_700_000_000.25)


def test_what_another_publisher_removed_first_is_removed(store, tmp_path, monkeypatch):
    store.add(write_version(tmp_path / "source"))
    remove = FlatStore.rm_file

    def remove_twice(self, path):
        remove(self, path)
        remove(self, path)

    monkeypatch.setattr(FlatStore, "rm_file", remove_twice)
    store.remove(1)
    assert FlatStore.keys() == []


def test_a_file_that_goes_in_parts_is_reported_part_by_part(store, tmp_path):
    source = write_version(tmp_path / "source", {"saved_model.pb": bytes(11 << 20)})
    reported = []
    store.add(source, reported.append)
    listed = len((source / FACTS).read_bytes())
    assert reported == [4 << 20, 4 << 20, 3 << 20, listed]  # fsspec copies 4 MiB at a time


# a store that does not answer


def test_a_store_that_never_answers_is_told_while_it_is_waited_for_and_given_up(silent, monkeypatch, caplog):
    monkeypatch.setattr(object_store, "WARN_SECONDS", 0.05)
    monkeypatch.setattr(object_store, "CALL_SECONDS", 0.4)
    reason = r"^silent://bucket/models/pause/ cannot be used: no answer within 0\.4 s$"
    for _ in range(2):
        with pytest.raises(StorageError, match=reason):
            silent.versions()
    said = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert said == ["silent://bucket/models/pause: no answer for 0.05 s; given up after 0.4 s"]  # once, not every time


def test_what_was_given_up_does_not_go_on_behind_the_callers_back(silent, monkeypatch):
    monkeypatch.setattr(object_store, "CALL_SECONDS", 0.1)
    while not SilentStore.asked:  # on a busy machine the time may be over before the store is asked at all
        with pytest.raises(StorageError):
            silent.versions()
    wait_until(lambda: SilentStore.asked == SilentStore.ended, seconds=10)


def test_google_s_package_waits_no_longer_for_a_server_that_says_nothing(monkeypatch):
    monkeypatch.setattr(object_store, "CALL_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        endpoint = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        monkeypatch.setitem(fsspec.config.conf, "gs", {"token": "anon", "endpoint_url": endpoint})
        with pytest.raises(StorageError, match=r"^gs://bucket/pause/ cannot be used: no answer within 0\.5 s$"):
            open_base("gs://bucket/pause").versions()


@contextmanager
def publisher(address: str):
    """`serving.publish --rollback` as a process, with Google's storage at that address."""
    environment = {**os.environ, "STORAGE_EMULATOR_HOST": f"http://{address}", "FSSPEC_GS_TOKEN": "anon"}
    command = [sys.executable, "-m", "serving.publish", "--rollback", "--to", "gs://bucket/pause"]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True) as run:
        try:
            yield run
        finally:
            run.kill()


def test_an_interrupted_publisher_does_not_wait_for_a_store_that_says_nothing():
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        with publisher(f"127.0.0.1:{nobody.getsockname()[1]}") as run:
            nobody.settimeout(60)
            with nobody.accept()[0]:  # now it waits
                # As Ctrl-C, which whoever runs tests in the background may have had ignored.
                run.send_signal(signal.SIGTERM)
                assert (run.communicate(timeout=30)[1], run.returncode) == ("interrupted\n", 130)


class Refusing(BaseHTTPRequestHandler):
    """A store that takes no request; gcsfs logs its errors, with a traceback, before it raises them."""

    def do_GET(self):
        body = b'{"error": {"code": 409, "message": "the bucket is\\nlocked"}}'
        self.send_response(409)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def test_what_a_store_refuses_is_one_line_without_its_packages_own_words():
    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with publisher(f"127.0.0.1:{server.server_port}") as run:
            said = run.communicate(timeout=60)[1]
        server.shutdown()
    assert said == "error: gs://bucket/pause/ cannot be used: the bucket is locked, 409\n"
    assert run.returncode == 2


# what is no store


def test_a_scheme_whose_package_is_missing_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(StorageError) as refused:
        open_base("s3://bucket/pause")
    wanted = "s3://bucket/pause cannot be used: s3:// needs the Python package s3fs, which is not installed"
    assert str(refused.value) == wanted


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("memory://bucket/pause", "kept in directories"),
        ("local://bucket/pause", "kept in directories"),
        ("flat://", "names no bucket"),
    ],
)
def test_what_holds_no_flat_keys_is_refused(url, words):
    with pytest.raises(StorageError, match=words):
        open_base(url)
