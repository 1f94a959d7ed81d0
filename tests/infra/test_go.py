"""Programs in Go: built once, whole or not at all; where they cannot be, one line says why."""

import sys
from pathlib import Path

import pytest

from infra.local import processes, pubsub
from infra.local.go import build
from infra.local.processes import Unavailable


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(processes, "FOLDER", tmp_path / "local")
    return tmp_path / "local" / "bin"


@pytest.fixture
def go(tmp_path, monkeypatch):
    """Puts a `go` that does what the script says on the PATH."""

    def put(script: str) -> None:
        (tmp_path / "path").mkdir(exist_ok=True)
        (tmp_path / "path" / "go").write_text(f"#!{sys.executable}\nimport os, sys\n{script}\n")
        (tmp_path / "path" / "go").chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path / "path"))

    return put


def test_a_program_is_built_once_for_each_version(go, folder, monkeypatch):
    go("open(os.environ['GOBIN'] + '/program', 'w').write(' '.join(sys.argv[1:]))")
    first, second = build("demo", "v1", ["example/demo@v1"]), build("demo", "v2", ["example/demo@v2"])
    assert first.read_text() == "install -modcacherw example/demo@v1" and second.read_text().endswith("demo@v2")
    monkeypatch.setenv("PATH", "")
    assert build("demo", "v1", ["example/demo@v1"]) == first
    assert {path.name for path in folder.iterdir()} == {"demo-v1", "demo-v2", "lock"}


def test_without_go_the_line_names_the_fix(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match=r"there is no `go` here; install Go 1\.26 or newer"):
        build("demo", "v1", ["example/demo@v1"])


def test_what_go_cannot_build_is_told_and_nothing_is_kept(go, folder):
    go("open(os.environ['GOBIN'] + '/half', 'w').close(); sys.exit('no route\\nto the proxy')")
    with pytest.raises(Unavailable, match="Go did not build demo: no route to the proxy; see to"):
        build("demo", "v1", ["example/demo@v1"])
    assert [path.name for path in folder.iterdir()] == ["lock"]


def test_the_fake_is_built_anew_where_its_source_has_changed(go, tmp_path, monkeypatch):
    go("open(os.environ['GOBIN'] + '/fake_pubsub', 'w').write(open('main.go').read())")
    source = tmp_path / "source"
    source.mkdir()
    for name in pubsub.FILES:
        (source / name).write_text(name)
    monkeypatch.setattr(pubsub, "SOURCE", source)
    former = pubsub.pubsub_binary()
    (source / "main.go").write_text("changed")
    assert pubsub.pubsub_binary() != former and pubsub.pubsub_binary().read_text() == "changed"
