"""Which resources and arguments Terraform's Google provider knows, from the package that CDK for Terraform generates of
it: the provider itself is in no registry that is open everywhere."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

from infra.local import processes
from infra.local.processes import Unavailable, alone

PACKAGE, VERSION = "@cdktf/provider-google-beta", "16.12.1"  # of google-beta 6.50.0
PACK_SECONDS = 300
FUNCTION = re.compile(r"^function (\w+)ToTerraform\(struct\) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
TOP = re.compile(r"^    synthesizeAttributes\(\) \{\n        return \{\n(.*?)^        \};", re.MULTILINE | re.DOTALL)
ARGUMENT = re.compile(r"^ +(\w+): (.*),$", re.MULTILINE)
BLOCK = re.compile(r"\b(google\w+)ToTerraform\b")
INTERFACE = re.compile(r"^export interface (\w+)(?: extends [\w.]+)? \{(.*?)^\}", re.MULTILINE | re.DOTALL)
CLASS = re.compile(
    r"^export declare class \w+ extends cdktf\.Terraform(?:Resource|DataSource) \{.*", re.MULTILINE | re.DOTALL
)
GETTER = re.compile(r"^    get (\w+)\(\)", re.MULTILINE)
FIELD = re.compile(r"^    readonly (\w+)(\??):", re.MULTILINE)

# Of a resource or block: argument -> None, or the schema of a block; NEEDED -> the names that must be given; of a
# resource also ATTRIBUTES -> what others may ask of it.
NEEDED, ATTRIBUTES = "", "*"
Schema = dict[str, Any]


def schemas(kinds: set[str]) -> dict[str, Schema]:
    """By type, google_... or data.google_...; without those that the provider does not know."""
    folder = processes.ROOT / "build" / "terraform-provider" / VERSION
    folder.mkdir(parents=True, exist_ok=True)
    with alone(folder / "lock"):
        missing = {kind for kind in kinds if not (folder / f"{kind}.json").exists()}
        if missing:
            for kind, schema in _derived(_package(folder), missing).items():
                (folder / f"{kind}.json").write_text(json.dumps(schema))
    found = {kind: json.loads((folder / f"{kind}.json").read_text()) for kind in kinds}
    return {kind: schema for kind, schema in found.items() if schema}


def _package(folder: Path) -> Path:
    packed = list(folder.glob("*.tgz"))
    if not packed:
        npm = shutil.which("npm")
        if npm is None:
            raise Unavailable(f"there is no npm here, which fetches {PACKAGE}: types and arguments were not checked")
        command = [npm, "pack", "--silent", "--pack-destination", str(folder), f"{PACKAGE}@{VERSION}"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PACK_SECONDS)
        except subprocess.TimeoutExpired:
            raise Unavailable(f"{PACKAGE} was not there within {PACK_SECONDS} s") from None
        if done.returncode:
            raise Unavailable(f"npm could not fetch {PACKAGE}: {' '.join(done.stderr.split())[-200:]}")
        packed = list(folder.glob("*.tgz"))
    return packed[0]


def _derived(package: Path, kinds: set[str]) -> dict[str, Schema]:
    folders = {kind.replace("data.", "data-").replace("_", "-"): kind for kind in kinds}
    sources: dict[str, dict[str, str]] = {kind: {} for kind in kinds}
    with tarfile.open(package) as archive:
        for member in archive:
            _, _, path = member.name.partition("/lib/")
            folder, _, file = path.partition("/")
            if folder in folders and file in ("index.js", "index.d.ts"):
                content = archive.extractfile(member)
                assert content is not None
                sources[folders[folder]][file] = content.read().decode()
    return {kind: schema_of(found["index.js"], found["index.d.ts"]) if found else {} for kind, found in sources.items()}


def schema_of(javascript: str, types: str) -> Schema:
    """Of one resource, from the code that writes it out and the types of what it takes."""
    bodies = {name: body for name, body in FUNCTION.findall(javascript)}
    required = {
        name[:1].lower() + name[1:]: [_snake(field) for field, optional in FIELD.findall(body) if not optional]
        for name, body in INTERFACE.findall(types)
    }
    top = TOP.search(javascript)
    config = next((name for name in required if name.endswith("Config") and name not in bodies), "")
    whole = CLASS.search(types)
    attributes = [_snake(name) for name in GETTER.findall(whole[0])] if whole else []
    return {**_schema(top[1] if top else "", required.get(config, []), bodies, required), ATTRIBUTES: attributes}


def _schema(body: str, needed: list[str], bodies: dict[str, str], required: dict[str, list[str]]) -> Schema:
    schema: Schema = {}
    for argument, written in ARGUMENT.findall(body):
        block = BLOCK.search(written)
        schema[argument] = _schema(bodies[block[1]], required.get(block[1], []), bodies, required) if block else None
    # Names in the types are in camel case, from which digits cannot be told back: those that are unknown fall out.
    schema[NEEDED] = [name for name in needed if name in schema]
    return schema


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)([A-Z])", lambda match: "_" + match[1].lower(), name)
