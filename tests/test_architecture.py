"""Data moves down the list of rooms, imports only point up it; what a worker imports stays light."""

import ast
import importlib.util
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("common", "model", "serving", "index", "pipelines", "search")
OUTSIDE = ("infra", "benchmarks", "tests", "examples")  # may import any room, and no room may import them
LIGHT = ("model/contract.py", "serving/client.py", "index/document.py")
FILES_IN_A_FOLDER, LINES_IN_A_FILE = 14, 250  # README and py.typed among them
HEAVY = {"tensorflow", "keras", "tensorflow_text", "keras_hub"}


def imported(path, root):
    """The absolute names of all modules that a file imports, wherever in it."""
    package = path.relative_to(root).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            # `from .. import serving` names its rooms only after the import
            yield from [module] if module else [alias.name for alias in node.names]


def wrong_imports(root):
    """'room/file.py imports name' for every import against the one-way rule."""
    found = []
    for position, room in enumerate(ROOMS):
        forbidden = {*ROOMS[position + 1 :], *OUTSIDE}
        for path in sorted((root / room).rglob("*.py")):
            names = [name for name in imported(path, root) if name.split(".")[0] in forbidden]
            found += [f"{path.relative_to(root)} imports {name}" for name in names]
    return found


def packages(root):
    """Directories of the rooms that hold Python beside an empty `__init__.py`, as dotted names."""
    files = [path for room in ROOMS for path in (root / room).rglob("*.py") if path.name != "__init__.py"]
    return {".".join(path.parent.relative_to(root).parts) for path in files}


def listed_packages(setup):
    for node in ast.walk(ast.parse(setup.read_text())):
        if isinstance(node, ast.keyword) and node.arg == "packages":
            return set(ast.literal_eval(node.value))
    raise AssertionError(f"{setup} lists no packages")


# the house


def test_imports_only_point_up_the_list_of_rooms():
    assert all((ROOT / room).is_dir() for room in ROOMS)
    assert len(list((ROOT / "model").rglob("*.py"))) > 10
    assert wrong_imports(ROOT) == []


def test_every_package_file_is_empty():
    files = [path for room in (*ROOMS, *OUTSIDE) for path in (ROOT / room).rglob("__init__.py")]
    assert ROOT / "model" / "__init__.py" in files
    assert [str(path.relative_to(ROOT)) for path in files if path.read_bytes()] == []


def test_every_package_has_its_file_and_is_in_the_wheel():
    found = packages(ROOT)
    assert {"model", "model.evaluate"} <= found
    assert [name for name in sorted(found) if not (ROOT / name.replace(".", "/") / "__init__.py").exists()] == []
    listed = listed_packages(ROOT / "setup.py")
    assert sorted(found - listed) == []
    assert [name for name in sorted(listed) if not (ROOT / name.replace(".", "/") / "__init__.py").exists()] == []


def test_the_page_is_in_the_wheel():
    (patterns,) = (
        ast.literal_eval(node.value)["search"]
        for node in ast.walk(ast.parse((ROOT / "setup.py").read_text()))
        if isinstance(node, ast.keyword) and node.arg == "package_data"
    )
    search = ROOT / "search"
    packed = {path for pattern in patterns for path in search.glob(pattern)}
    files = {path for path in (search / "page").rglob("*") if path.is_file()}
    assert search / "page" / "index.html" in files
    assert files - packed == set()


def test_common_imports_the_standard_library_alone_but_for_tensorflow_s_start():
    light = [path for path in (ROOT / "common").glob("*.py") if path.name != "runtime.py"]
    assert ROOT / "common" / "command.py" in light
    names = {name.split(".")[0] for path in light for name in imported(path, ROOT)}
    assert names - set(sys.stdlib_module_names) == {"common"}


@pytest.mark.parametrize("room", ["common", "model", "serving", "index", "search", "benchmarks", "infra"])
def test_a_room_is_folders_of_a_dozen_files_that_fit_on_a_few_pages(room):
    files = [path for path in (ROOT / room).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert len(files) > 5
    folders = Counter(str(path.parent.relative_to(ROOT)) for path in files)
    assert {folder: count for folder, count in folders.items() if count > FILES_IN_A_FOLDER} == {}
    written = [path for path in files if path.suffix in (".py", ".js", ".css") and "_pb2" not in path.name]
    long = {str(path): lines for path in written if (lines := len(path.read_text().splitlines())) > LINES_IN_A_FILE}
    assert long == {}


@pytest.mark.parametrize("module", [name for name in LIGHT if (ROOT / name).exists()])
def test_what_the_next_room_imports_is_light(module):
    # Where they are not installed, "not imported" would say nothing.
    assert all(importlib.util.find_spec(heavy) for heavy in HEAVY)
    name = module.removesuffix(".py").replace("/", ".")
    script = f"import sys, {name}; print('imported', *sorted({HEAVY!r} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["imported"]


# every process has a CPU that may show what it does not hold

PRODUCTS = {"tensorflow", "keras", "torch", "sentence_transformers"}  # multiply by oneDNN
CAPPED = {"common/runtime.py", "common/cpu.py"}


def modules_of(path, root):
    """The files of this house that a file imports, wherever in it; `from model import golden` names one as well."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        yield from (found for name in names if (found := root / f"{name.replace('.', '/')}.py").is_file())


def reached(path, root):
    """A command's file and all that it may import, directly or not."""
    seen, left = set(), [path]
    while left:
        one = left.pop()
        if one not in seen:
            seen.add(one)
            left += modules_of(one, root)
    return seen


def uncapped_commands(root):
    """Commands that may multiply by oneDNN, and never ask which instructions the CPU has."""
    files = [path for room in (*ROOMS, "infra", "benchmarks") for path in sorted((root / room).rglob("*.py"))]
    for command in (path for path in files if 'if __name__ == "__main__":' in path.read_text(encoding="utf-8")):
        all_of_it = reached(command, root)
        multiplies = any(name.split(".")[0] in PRODUCTS for path in all_of_it for name in imported(path, root))
        if multiplies and not {path.relative_to(root).as_posix() for path in all_of_it} & CAPPED:
            yield command.relative_to(root).as_posix()


def test_every_command_that_multiplies_matrices_asks_first_which_instructions_the_cpu_has():
    assert ROOT / "model" / "network" / "encoder.py" in reached(ROOT / "model" / "train.py", ROOT)
    assert list(uncapped_commands(ROOT)) == []


def test_a_command_that_does_not_ask_is_found(tmp_path):
    end = '\nif __name__ == "__main__":\n    main()\n'
    root = house(
        tmp_path,
        {
            "model/encoder.py": "import keras",
            "common/runtime.py": "import tensorflow",
            "model/train.py": "import common.runtime\nfrom model.encoder import Encoder" + end,
            "model/report.py": "def main():\n    from model import encoder" + end,
            "model/names.py": "import json" + end,
        },
    )
    assert list(uncapped_commands(root)) == ["model/report.py"]


# borders

ASKING = (*ROOMS, "infra")  # benchmarks compare a back end with what is inside it
BACK_ENDS = ("index.elastic", "index.lance")
SCHEMES = ("http:", "https:", "lance:")
OUTAGES = ("Busy", "FeedbackDown", "IndexFailed", "IndexUnavailable", "NotStarted", "NotWithdrawn", "ServerSilent")
OUTAGES += ("ModelNotServed", "ServingUnavailable")
WITHDRAWN = ".withdrawn"
BEAM = "apache_beam"


def files_of(root, rooms):
    return [path for room in rooms for path in sorted((root / room).rglob("*.py"))]


def is_inside(name, package):
    return name == package or name.startswith(f"{package}.")


def imports_of_back_ends(root):
    """Imports of a back end's inside by others than itself; `index/open.py` alone knows the doors of all."""
    for path in files_of(root, ASKING):
        own = ".".join(path.relative_to(root).parts[:2])
        for name in imported(path, root):
            inside = [package for package in BACK_ENDS if is_inside(name, package) and package != own]
            is_door = path == root / "index" / "open.py" and name.endswith(".backend")
            if inside and not is_door:
                yield f"{path.relative_to(root)} imports {name}"


def schemes_asked(root):
    """Calls outside of index/ that tell one kind of index from the other by how an address begins."""
    for path in files_of(root, ("pipelines", "search", "infra")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("startswith", "removeprefix"):
                texts = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
                if any(isinstance(text, str) and text.startswith(SCHEMES) for text in texts):
                    yield f"{path.relative_to(root)}:{node.lineno}"


def bases(root):
    """Of every class of the house by its name: the names of all that it is derived from."""
    found = {}
    for path in files_of(root, (*ROOMS, "infra", "benchmarks")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                names = {getattr(base, "id", getattr(base, "attr", "")) for base in node.bases}
                found[node.name] = found.get(node.name, set()) | names

    def above(name, seen=()):
        direct = found.get(name, set()) - {*seen}
        return direct.union(*(above(base, (*seen, name)) for base in direct))

    return {name: above(name) for name in found}


def imports_of_beam(root):
    """Where a server or its client would take seconds, and a heavy package, for what is a pipeline's."""
    for path in files_of(root, ("common", "model", "serving")):
        for name in imported(path, root):
            if is_inside(name, BEAM):
                yield f"{path.relative_to(root)} imports {name}"


def words_of_publishing(root):
    """Where model/ knows what only `serving.publish` writes."""
    for path in files_of(root, ("common", "model")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and node.value == WITHDRAWN:
                yield f"{path.relative_to(root)}:{node.lineno}"


def test_a_back_end_is_reached_by_its_door_alone():
    assert (ROOT / "index" / "elastic").is_dir() and (ROOT / "index" / "lance").is_dir()
    assert list(imports_of_back_ends(ROOT)) == []


def test_which_back_end_an_address_means_is_asked_in_one_place():
    assert list(schemes_asked(ROOT)) == []


def test_outages_are_no_input_errors():
    above = bases(ROOT)
    assert {name for name in OUTAGES if "Outage" not in above[name]} == set()
    assert {name for name, its in above.items() if {"Outage", "InputError"} <= its} == set()


def test_serving_owns_what_publishing_writes():
    assert f'"{WITHDRAWN}"' in (ROOT / "serving" / "storage" / "base.py").read_text()
    assert list(words_of_publishing(ROOT)) == []


def test_serving_does_without_beam():
    assert BEAM in {name.split(".")[0] for path in files_of(ROOT, ("pipelines",)) for name in imported(path, ROOT)}
    assert list(imports_of_beam(ROOT)) == []


def test_a_crossed_border_is_found(tmp_path):
    root = house(
        tmp_path,
        {
            "index/open.py": "from index.elastic.backend import ELASTIC\nfrom index.lance.store import open_lance",
            "index/elastic/store.py": "from index.elastic import queries\nfrom index.lance.rows import now",
            "search/feedback/elastic_store.py": "def later():\n    from index.elastic.cluster.retry import Retry",
            "pipelines/options.py": 'index.startswith(("http://", "https://"))\n"http://".startswith("x")',
            "infra/indices.py": 'Path(url.removeprefix("lance://"))\nurl.startswith("gs://")',
            "common/errors.py": "class InputError(Exception): ...\nclass Outage(Exception): ...",
            "index/errors.py": "class Unusable(InputError): ...\nclass IndexUnavailable(Unusable, Outage): ...",
            "model/export.py": 'WITHDRAWN = ".withdrawn"',
            "serving/storage/remote.py": "import apache_beams\nif True:\n    from apache_beam.io import filesystem",
        },
    )
    assert list(imports_of_back_ends(root)) == [
        "index/elastic/store.py imports index.lance.rows",
        "index/open.py imports index.lance.store",
        "search/feedback/elastic_store.py imports index.elastic.cluster.retry",
    ]
    assert list(schemes_asked(root)) == ["pipelines/options.py:1", "pipelines/options.py:2", "infra/indices.py:1"]
    assert bases(root)["IndexUnavailable"] == {"Unusable", "InputError", "Outage", "Exception"}
    assert list(words_of_publishing(root)) == ["model/export.py:1"]
    assert list(imports_of_beam(root)) == ["serving/storage/remote.py imports apache_beam.io"]


# the walker itself, on a house with a wrong import in every manner of writing one


def house(root, files):
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("import search", "search"),
        ("import json, pipelines.encode as p", "pipelines.encode"),
        ("from pipelines import encode", "pipelines"),
        ("from pipelines.encode import run", "pipelines.encode"),
        ("def later():\n    if True:\n        from search.app import create_app", "search.app"),
        ("from ..search import app", "search"),
        ("from .. import search", "search"),
        ("from infra.local import start", "infra.local"),
        ("import benchmarks", "benchmarks"),
        ("from tests import helper", "tests"),
    ],
)
def test_a_wrong_import_is_found(tmp_path, line, name):
    right = {"model/contract.py": "import json", "search/app.py": "import index.document"}
    root = house(tmp_path, {"index/document.py": line, **right})
    assert wrong_imports(root) == [f"index/document.py imports {name}"]


@pytest.mark.parametrize(
    "line",
    [
        "import model.contract, serving.client",
        "from . import base",
        "from .base import Index",
        "from index.elastic import queries",
        "import searching",  # begins like a room
        "'import search'",
    ],
)
def test_a_right_import_is_let_through(tmp_path, line):
    assert wrong_imports(house(tmp_path, {"index/document.py": line})) == []


def test_a_deep_file_is_walked_too(tmp_path):
    root = house(tmp_path, {"serving/server/grpc.py": "from ...index import base\nfrom ..client import Client"})
    assert wrong_imports(root) == ["serving/server/grpc.py imports index"]


def test_a_package_that_the_wheel_would_miss_is_found(tmp_path):
    modules = dict.fromkeys(["model/text.py", "serving/server/grpc.py", "search/__init__.py"], "")
    root = house(tmp_path, {**modules, "setup.py": "setup(packages=['model'])"})
    assert packages(root) == {"model", "serving.server"}
    assert packages(root) - listed_packages(root / "setup.py") == {"serving.server"}
