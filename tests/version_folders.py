"""Version folders as far as storage looks at them: quick to write, and not to be loaded."""

import json
from pathlib import Path

FACTS = "assets.extra/pause.json"
DATA = "variables/variables.data-00000-of-00001"
FILES = {"saved_model.pb": b"graph", "variables/variables.index": b"index", DATA: b"w" * 90_112}


def write_version(directory: Path, files: dict[str, bytes] = FILES) -> Path:
    """What model.export leaves, as far as storage looks at it."""
    facts = {"files": {name: len(content) for name, content in files.items()}}
    for name, content in {**files, FACTS: json.dumps(facts).encode()}.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return directory


def content(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes() for path in directory.rglob("*") if path.is_file()
    }
