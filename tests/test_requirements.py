"""What the packages import is declared in setup.py, and locked in the version that is declared there."""

import ast
import importlib.metadata
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("common", "model", "serving", "index", "pipelines", "search", "infra", "benchmarks")
# Engines that are measured against run in an environment of their own.
PEERS = "benchmarks/peers"
# Programs that hold deployments against validators have one too.
TOOLS = "infra/checks/requirements.txt"
# Packages that share one name to import from; Google's clients come with Beam's extra for its cloud.
SHARED = {"google.protobuf": "protobuf", "google.cloud": "apache-beam", "google.api_core": "apache-beam"}
PINNED = re.compile(r"^(?P<name>[\w.-]+)(?:\[[\w,]+\])?==(?P<version>\S+)", re.MULTILINE)


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def third_party(root):
    """Top-level names that are imported from elsewhere, wherever in a file, with the first file that does."""
    found = {}
    for path in (path for room in ROOMS for path in sorted((root / room).rglob("*.py"))):
        if path.relative_to(root).as_posix().startswith(PEERS):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level and node.module:
                joined = [f"{node.module}.{alias.name}" for alias in node.names]
                names = joined if node.module in ("google", "google.cloud") else [node.module]
            for name in names:
                top = ".".join(name.split(".")[: 2 if name.startswith("google.") else 1])
                if top not in sys.stdlib_module_names and top not in ROOMS:
                    found.setdefault(top, path.relative_to(root).as_posix())
    return found


def pins(text):
    return {normal(match["name"]): match["version"] for match in PINNED.finditer(text)}


def declared(root):
    """name -> version of all requirements in setup.py, whatever they are for."""
    constants = (node.value for node in ast.walk(ast.parse((root / "setup.py").read_text())) if hasattr(node, "value"))
    return pins("\n".join(value for value in constants if isinstance(value, str) and PINNED.fullmatch(value)))


def undeclared(root):
    known, installed = declared(root), importlib.metadata.packages_distributions()
    tools = pins((root / TOOLS).read_text()) if (root / TOOLS).exists() else {}
    for name, path in sorted(third_party(root).items()):
        own = [SHARED[name]] if name in SHARED else installed.get(name, [name])
        if not {normal(one) for one in own} & {*known, *(tools if path.startswith("infra/") else ())}:
            yield f"{path} imports {name}"


def test_every_import_from_elsewhere_is_declared():
    assert {"numpy", "pydantic", "tqdm", "threadpoolctl", "google.protobuf"} <= third_party(ROOT).keys()
    assert list(undeclared(ROOT)) == []


def test_every_requirement_is_locked_in_the_version_that_is_declared():
    locked = pins((ROOT / "requirements.lock").read_text())
    assert len(locked) > len(declared(ROOT)) > 20
    assert {name: locked.get(name) for name in declared(ROOT)} == declared(ROOT)


def without_hashes(lock):
    """Requirements that an index could answer with any file it likes."""
    entries = re.split(r"(?<!\\)\n", lock.strip())
    return [entry.split()[0] for entry in entries if not re.search(r"--hash=sha256:[0-9a-f]{64}(\s|$)", entry)]


def test_every_requirement_is_locked_with_its_hashes():
    lock = (ROOT / "requirements.lock").read_text()
    assert without_hashes(lock) == []
    assert without_hashes(lock + "leftpad==1.0\nrightpad==1.0 \\\n    --hash=sha256:0123\n") == [
        "leftpad==1.0",
        "rightpad==1.0",
    ]
    # The place a package comes from is the reader's own affair, and an address may hold a password.
    assert "://" not in lock and "--index" not in lock and "--find-links" not in lock


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("import numpy as np", "numpy"),
        ("def later():\n    from numpy.typing import NDArray", "numpy"),
        ("from google.cloud import storage", "google.cloud"),
        ("import never_heard_of.it", "never_heard_of"),
    ],
)
def test_an_import_that_is_not_declared_is_found(tmp_path, line, told):
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "base.py").write_text(f"import json\nimport orjson\nfrom index.open import x\n{line}\n")
    (tmp_path / "setup.py").write_text('SERVE = ["orjson==3.13.0"]')
    assert list(undeclared(tmp_path)) == [f"index/base.py imports {told}"]
