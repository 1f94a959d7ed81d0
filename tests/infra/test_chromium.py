"""A browser for the page's tests: the one that is there, or installed once; where neither goes, one line says why."""

import os
import sys
from pathlib import Path

import pytest

from infra.local import processes
from infra.local.chromium import chromium_binary
from infra.local.processes import Unavailable


@pytest.fixture(autouse=True)
def path(tmp_path, monkeypatch) -> Path:
    """A PATH with nothing on it."""
    monkeypatch.setattr(processes, "FOLDER", tmp_path / "local")
    monkeypatch.delenv("PAUSE_CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    (tmp_path / "path").mkdir()
    return tmp_path / "path"


def put(path: Path, script: str = "") -> Path:
    path.write_text(f"#!{sys.executable}\nimport os, sys\nfrom pathlib import Path\n{script}\n")
    path.chmod(0o755)
    return path


def root(monkeypatch, number: int = 0) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: number)


# Writes down what it was told, and does what is asked of it once the lists are there.
APT = """
here = Path(sys.argv[0]).parent
with open(here / "told", "a") as told:
    print(*sys.argv[5:], os.environ["DEBIAN_FRONTEND"], file=told)
if "update" in sys.argv:
    (here / "lists").touch()
elif not (here / "lists").exists():
    sys.exit("Unable to locate\\npackage chromium")
else:
    (here / "chromium").touch(0o755)
"""


def test_the_one_that_is_named_comes_before_those_on_the_path(path, tmp_path, monkeypatch):
    found = put(path / "google-chrome")
    assert chromium_binary() == found
    monkeypatch.setenv("PAUSE_CHROMIUM", str(put(tmp_path / "mine")))
    assert chromium_binary() == tmp_path / "mine"


def test_a_name_that_is_no_program_is_told_although_there_is_another(path, monkeypatch):
    put(path / "chromium")
    monkeypatch.setenv("PAUSE_CHROMIUM", "/nowhere/chromium")
    with pytest.raises(Unavailable, match="PAUSE_CHROMIUM is '/nowhere/chromium', which is no program: give"):
        chromium_binary()


def test_debians_is_installed_once_and_with_old_lists_too(path, monkeypatch):
    root(monkeypatch)
    put(path / "apt-get", APT)
    assert chromium_binary() == path / "chromium"
    assert chromium_binary() == path / "chromium"
    install = "install --no-install-recommends chromium noninteractive"
    assert (path / "told").read_text().splitlines() == [install, "update noninteractive", install]


def test_what_apt_cannot_install_is_told_in_its_words(path, monkeypatch):
    root(monkeypatch)
    put(path / "apt-get", "sys.exit('no route\\nto the mirror')")
    with pytest.raises(Unavailable, match="apt-get did not install chromium: no route to the mirror; install Chromium"):
        chromium_binary()


@pytest.mark.parametrize(("user", "why"), [(0, "no apt-get to install one with"), (1000, "apt-get needs root")])
def test_where_nothing_can_be_installed_the_line_names_the_fix(path, monkeypatch, user, why):
    root(monkeypatch, user)
    if user:
        put(path / "apt-get", APT)
    with pytest.raises(Unavailable, match=f"there is no Chromium here .*{why}.*name one by PAUSE_CHROMIUM"):
        chromium_binary()
    assert not (path / "told").exists()
