"""What a newcomer meets in pipelines/: few things at each level, short files, borders, and a short way for a record."""

import ast
from pathlib import Path

import pytest
from place import Place
from walk import files_of, walk

ROOM = Path(__file__).parents[2] / "pipelines"
FILES = sorted(path for path in ROOM.rglob("*.py") if path.name != "__init__.py")
# Who may be imported inside of the room; the commands and the graph may import all.
INSIDE = {
    "concurrency": {"concurrency"},
    "io": {"io", "options", "records"},
    "transforms": {"transforms", "concurrency", "io", "metrics", "options", "records", "services"},
    "reindex": {"reindex", "transforms", "concurrency", "io", "options", "preflight", "records", "services"},
}
MOST_ENTRIES, MOST_LINES, MOST_FILES = 12, 250, 15


def imported(path):
    """The names within pipelines/ that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "pipelines":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pipelines."):
            yield node.module.split(".")[1]


def test_no_level_has_more_than_a_dozen_entries():
    assert len(FILES) > 20
    levels = {level: [path for path in FILES if level in path.parents] for level in {path.parent for path in FILES}}
    entries = {level: {path.relative_to(level).parts[0] for path in paths} for level, paths in levels.items()}
    assert {level.name: names for level, names in entries.items() if len(names) > MOST_ENTRIES} == {}


def test_no_file_is_too_long_to_be_read():
    lines = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    assert {name: number for name, number in lines.items() if number > MOST_LINES} == {}


@pytest.mark.parametrize("folder", INSIDE)
def test_a_folder_imports_only_what_it_is_built_on(folder):
    found = {name for path in FILES if path.parent == ROOM / folder for name in imported(path)}
    assert found  # the premise
    assert found <= INSIDE[folder]


def test_a_record_passes_at_most_fifteen_files_from_its_line_to_the_index(tmp_path, encoder):
    place = Place(tmp_path, encoder.address)
    line = place.file({"id": "a", "description": "Forges anvils", "industry": "Metal"})
    way = walk("record", "--runner=DirectRunner", "--input", str(line), *place.flags)
    assert place.index.get("a") is not None and encoder.texts == ["Metal. Forges anvils"]  # the premise
    files = list(dict.fromkeys(files_of(way)))
    assert files[0] == "pipelines/io/files.py" and "index/base.py" in files
    assert len(files) <= MOST_FILES, files
