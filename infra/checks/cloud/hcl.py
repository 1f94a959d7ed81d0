"""A folder of Terraform's files as one configuration: what it defines, and the text in which it is referred to."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from infra.checks.tools import python_tool

PARSE_SECONDS = 120
# Run by the Python of the validators; the fork of python-hcl2 that checkov has too, since both have the same name.
PARSE = """
import json, sys
import hcl2

made = {}
for path in sys.argv[1:]:
    with open(path) as file:
        try:
            made[path] = hcl2.load(file)
        except Exception as error:
            made[path] = " ".join(str(error).split())[:300]
print(json.dumps(made))
"""
COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|#[^\n]*|//[^\n]*', re.MULTILINE)


@dataclass
class Configuration:
    """Blocks by their address; `text` is of each file, without comments."""

    resources: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)  # (google_x or data.google_x, name)
    variables: dict[str, dict[str, Any]] = field(default_factory=dict)
    outputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    locals: dict[str, Any] = field(default_factory=dict)
    text: dict[str, str] = field(default_factory=dict)
    places: dict[tuple[str, str], str] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def local_text(self, name: str) -> str:
        """The expression of a local value, as it is written."""
        for text in self.text.values():
            begin = re.search(rf"^  {name} += ", text, re.MULTILINE)
            if begin:
                rest = text[begin.end() :]
                end = re.search(r"^(  \w+ += |\})|\n\n", rest, re.MULTILINE)
                return rest[: end.start()] if end else rest
        return ""


def load(folder: Path, shown: Path) -> Configuration:
    """`shown` is the root that findings' paths begin at."""
    files = sorted(folder.glob("*.tf"))
    made = Configuration()
    if not files:
        made.faults.append(f"{folder.relative_to(shown)}: there is no .tf file")
        return made
    run = subprocess.run(
        [str(python_tool("python")), "-c", PARSE, *map(str, files)],
        capture_output=True, text=True, timeout=PARSE_SECONDS, check=True,
    )  # fmt: skip
    for path, parsed in json.loads(run.stdout).items():
        place = str(Path(path).relative_to(shown))
        if isinstance(parsed, str):
            made.faults.append(f"{place}: {parsed}")
            continue
        made.text[place] = COMMENT.sub(lambda match: match[1] or "", Path(path).read_text())
        _gather(made, place, parsed)
    return made


def _gather(made: Configuration, place: str, parsed: dict[str, Any]) -> None:
    for kind, prefix in (("resource", ""), ("data", "data.")):
        for block in parsed.get(kind, []):
            for type_, named in block.items():
                for name, body in named.items():
                    if (f"{prefix}{type_}", name) in made.resources:
                        made.faults.append(f"{place}: {prefix}{type_}.{name} is defined twice")
                    made.resources[f"{prefix}{type_}", name] = body
                    made.places[f"{prefix}{type_}", name] = place
    for kind, into in (("variable", made.variables), ("output", made.outputs)):
        for block in parsed.get(kind, []):
            into.update(block)
            made.places.update({(kind, name): place for name in block})
    for block in parsed.get("locals", []):
        made.locals.update({name: value for name, value in block.items() if not name.startswith("__")})
