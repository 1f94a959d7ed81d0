"""The flex template's metadata held against the flags and against gcloud's own parser; the job's graph against the one
that was kept, by which a running job can be updated."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from infra.checks.check import Check
from infra.checks.cloud.rehearsal import Refused, rehearse
from infra.dataflow import graph
from infra.dataflow.parameters import DESCRIPTIONS, flags, metadata
from infra.dataflow.template import specification
from infra.local.processes import Unavailable

METADATA, TERRAFORM = "infra/dataflow/metadata.json", "infra/terraform"
RENEW = "python -m infra.dataflow.template --keep"
# As Dataflow's reference documents ParameterMetadata.
FIELDS = {
    "name": str, "label": str, "helpText": str, "groupName": str, "isOptional": bool, "paramType": str,
    "regexes": list, "defaultValue": str, "enumOptions": list, "hiddenUi": bool, "parentName": str,
    "parentTriggerValues": list, "customMetadata": dict,
}  # fmt: skip
KINDS = {
    "TEXT", "GCS_READ_BUCKET", "GCS_WRITE_BUCKET", "GCS_READ_FILE", "GCS_WRITE_FILE", "GCS_READ_FOLDER",
    "GCS_WRITE_FOLDER", "PUBSUB_TOPIC", "PUBSUB_SUBSCRIPTION", "BOOLEAN", "ENUM", "NUMBER",
}  # fmt: skip
IMAGE = "registry/pause-pipeline:1"
PARSER_SECONDS = 60
# Run by a Python that has gcloud's library on its path: the message as gcloud reads it, and what it could not place.
PARSE = """
import json, sys
from apitools.base.py import encoding
from googlecloudsdk.api_lib.dataflow.apis import Templates

kind, given = json.load(sys.stdin)
try:
    if kind == "CONTAINER_SPEC":
        Templates._BuildTemplateMetadata(json.dumps(given["metadata"]))
    whole = encoding.JsonToMessage(getattr(Templates, kind), json.dumps(given))
except Exception as error:
    sys.exit(f"refused: {error}")

def left(message, place):
    for name in message.all_unrecognized_fields():
        print(f"{place}{name}")
    for field in message.all_fields():
        value = getattr(message, field.name)
        for one in value if isinstance(value, list) else [value]:
            if hasattr(one, "all_unrecognized_fields"):
                left(one, f"{place}{getattr(one, 'name', None) or field.name}.")

left(whole, "")
"""


def against_flags(root: Path) -> list[str]:
    """Parameters without a flag, flags without a parameter, and those that are no longer as the flag is."""
    kept = _kept(root)
    if isinstance(kept, str):
        return [kept]
    was, now = ({one.get("name"): one for one in made["parameters"]} for made in (kept, metadata()))
    lines = [f"parameter {name} is no flag of pipelines.encode" for name in was if name not in now]
    lines += [f"flag --{name} has no parameter: {RENEW}" for name in now if name not in was]
    for name in (name for name in was if name in now and was[name] != now[name]):
        keys = [key for key in {**was[name], **now[name]} if was[name].get(key) != now[name].get(key)]
        lines.append(f"parameter {name} is not as its flag is in {', '.join(keys)}: {RENEW}")
    lines += [
        f"{key} is not as the code has it: {RENEW}" for key in ("name", "description") if kept[key] != metadata()[key]
    ]
    return [f"{METADATA}: {line}" for line in lines]


def structure(root: Path) -> list[str]:
    """The documented fields and types; every value bounded; what the code describes is a flag."""
    kept = _kept(root)
    if isinstance(kept, str):
        return [kept]
    lines = [
        f"infra/dataflow/parameters.py: it describes {name}, which is no flag" for name in DESCRIPTIONS.keys() - flags()
    ]
    for one in kept["parameters"]:
        lines += [f"{METADATA}: parameter {one.get('name')}: {fault}" for fault in _faults(one)]
    return lines


def _faults(parameter: dict[str, Any]) -> list[str]:
    faults = [f"{key} is no field" for key in parameter if key not in FIELDS]
    faults += [f"{key} is empty" for key in ("name", "label", "helpText", "paramType") if not parameter.get(key)]
    faults += [f"{key} is a {type(value).__name__}" for key, value in parameter.items()
               if key in FIELDS and not isinstance(value, FIELDS[key])]  # fmt: skip
    if parameter.get("paramType") not in KINDS:
        faults.append(f"paramType {parameter.get('paramType')} is none of Dataflow's")
    if not parameter.get("regexes") and not parameter.get("enumOptions"):
        faults.append("anything would be accepted; describe it in infra/dataflow/parameters.py")
    for pattern in parameter.get("regexes", []):
        try:
            if not re.fullmatch(pattern, parameter.get("defaultValue", "")) and "defaultValue" in parameter:
                faults.append(f"its default is not as {pattern} wants it")
        except re.error as error:
            faults.append(f"{pattern} is no pattern: {error}")
    return faults


def by_gcloud(root: Path) -> list[str]:
    """What gcloud's own parser refuses of the template, or cannot place."""
    kept = _kept(root)
    if isinstance(kept, str):
        return [kept]
    return [f"{METADATA}: {fault}" for fault in _parsed("CONTAINER_SPEC", {**specification(IMAGE), "metadata": kept})]


def launch_by_gcloud(root: Path) -> list[str]:
    """And of the request by which the scheduler starts the batch."""
    try:
        made = rehearse(root / TERRAFORM, {})["resources"]
    except Refused as error:
        return [f"{TERRAFORM}: {error}"]
    request = json.loads(base64.b64decode(made["google_cloud_scheduler_job__batch"][0]["http_target"]["body"]))
    return [f"{TERRAFORM}/dataflow.tf: {fault}" for fault in _parsed("LAUNCH_FLEX_TEMPLATE_REQUEST", request)]


def _parsed(kind: str, message: dict[str, Any]) -> list[str]:
    found = shutil.which("gcloud")
    library = Path(found).resolve().parents[1] / "lib" if found else None
    if library is None or not (library / "googlecloudsdk").is_dir():
        raise Unavailable("there is no gcloud with its library here: only the structure of the template was checked")
    bundled = library.parent / "platform" / "bundledpythonunix" / "bin" / "python3"
    done = subprocess.run(
        [str(bundled if bundled.exists() else sys.executable), "-c", PARSE],
        input=json.dumps([kind, message]),
        env={"PYTHONPATH": f"{library}:{library / 'third_party'}"},
        capture_output=True,
        text=True,
        timeout=PARSER_SECONDS,
    )
    if done.returncode:
        return [f"gcloud's parser {' '.join(done.stderr.split())[:300]}"]
    return [f"gcloud knows no {field}" for field in done.stdout.split()]


def by_graph(root: Path) -> list[str]:
    """Steps and coders that a running job could not be updated over."""
    lines = graph.compare(root / "infra" / "dataflow" / "graphs")
    return [f"infra/dataflow/graphs/{line}" for line in lines] + ([graph.MEANING] if lines else [])


def _kept(root: Path) -> dict[str, Any] | str:
    try:
        kept: dict[str, Any] = json.loads((root / METADATA).read_text())
    except (OSError, ValueError) as error:
        return f"{METADATA}: {error}"
    if not {"name", "description", "parameters"} <= kept.keys():
        return f"{METADATA}: it needs name, description and parameters"
    return kept


CHECKS = [
    Check("template: flags and parameters", against_flags),
    Check("template: structure", structure),
    Check("template: gcloud's parser", by_gcloud),
    Check("template: scheduled launch, gcloud's parser", launch_by_gcloud),
    Check("template: graph kept for --update", by_graph),
]
