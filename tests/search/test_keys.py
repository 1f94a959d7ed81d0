"""The file of keys: without a good one nobody is let in, and it is bounded."""

import os

import pytest

from common.errors import InputError
from search import keys


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@pytest.fixture
def key_file(tmp_path):
    return tmp_path / "keys"


def test_a_broken_file_is_told_with_its_line(key_file):
    key_file.write_text("nonsense\n")
    with pytest.raises(InputError, match="line 1"):
        keys.read(key_file)


def remove(path):
    path.unlink()


def make_unreadable(path):
    path.unlink()
    path.mkdir()  # whoever runs the tests may read everything but this


def empty(path):
    path.write_text("")


def spoil(path):
    path.write_text("nonsense\n")


def open_to_writers(path):
    path.chmod(0o666)


def fill(path):
    path.write_text("#" * (keys.MOST_BYTES + 1))


def no_text(path):
    path.write_bytes(b"\xff\xfe")


@pytest.mark.parametrize("harm", [remove, make_unreadable, empty, spoil, open_to_writers, fill, no_text])
def test_without_a_good_file_no_key_is_good_until_it_is_back(serve, key_file, caplog, harm):
    key = keys.add(key_file, "ann", "read")
    content = key_file.read_bytes()
    client = serve(keys=str(key_file))
    assert client.get("/v1/companies/air-a", headers=bearer(key)).status_code == 200
    harm(key_file)
    locked = client.get("/v1/companies/air-a", headers=bearer(key))
    assert (locked.status_code, locked.json()["error"]["code"]) == (503, "keys_locked")
    assert str(key_file) in caplog.text  # whoever runs it is told, callers are not
    assert str(key_file) not in locked.text
    assert client.get("/v1/companies/air-a").status_code == 401
    if key_file.is_dir():
        key_file.rmdir()
    key_file.write_bytes(content)
    key_file.chmod(0o600)
    assert client.get("/v1/companies/air-a", headers=bearer(key)).status_code == 200


def test_a_file_that_could_not_be_read_for_a_moment_is_read_again(key_file, monkeypatch):
    key, now = keys.add(key_file, "ann", "read"), [0.0]
    known = keys.Keys(key_file, clock=lambda: now[0])
    content = keys.read_text
    monkeypatch.setattr(keys, "read_text", lambda path: spoilt(path))

    def spoilt(path):
        raise InputError(f"keys cannot be read from {path}: Input/output error")

    os.utime(key_file)
    with pytest.raises(keys.KeysLocked):
        known.caller(key)
    monkeypatch.setattr(keys, "read_text", content)
    now[0] = keys.RETRY_SECONDS
    assert known.caller(key).name == "ann"


def test_a_pipe_is_no_key_file_and_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="no file"):
        keys.read(tmp_path / "pipe")


def test_a_file_takes_so_many_keys(key_file, monkeypatch):
    monkeypatch.setattr(keys, "MOST", 2)
    keys.add(key_file, "ann", "read")
    keys.add(key_file, "bob", "read")
    with pytest.raises(InputError, match="full"):
        keys.add(key_file, "eve", "read")
    key_file.write_text("".join(f"n{n} read {n:064x}\n" for n in range(3)))
    with pytest.raises(InputError, match="more than 2 keys"):
        keys.read(key_file)
