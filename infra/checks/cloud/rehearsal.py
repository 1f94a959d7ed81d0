"""What Terraform would make, worked out by terraform itself without the provider: each resource becomes a local value
of its arguments, with stand-ins for what Google would answer, so that every expression and output is evaluated."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from infra.checks.cloud.hcl import COMMENT
from infra.local.processes import Unavailable

SECONDS = 60
BLOCK = re.compile(r'^(\w+)((?: "[^"]+")*) \{\n(.*?)^\}', re.MULTILINE | re.DOTALL)
META = re.compile(r"^  (for_each|count) += (.*)\n", re.MULTILINE)
# Dynamic blocks go too: an object has each key but once. Their arguments are held against the provider's types.
DROPPED = re.compile(
    r'^  (?:provider += [^\n]*|depends_on += \[.*?\]|dynamic "\w+" \{\n.*?^  \})\n', re.MULTILINE | re.DOTALL
)
NESTED = re.compile(r"^( +)(\w+) \{$", re.MULTILINE)
ADDRESS = re.compile(r"\b(data\.)?(google_\w+)\.(\w+)")
EMAIL = "${one.account_id}@${var.project}.iam.gserviceaccount.com"
ANSWERED = {
    "google_artifact_registry_repository": {"name": "${one.repository_id}"},
    "google_compute_network": {"id": "projects/${var.project}/global/networks/${one.name}"},
    "google_compute_subnetwork": {"id": "projects/${var.project}/regions/${one.region}/subnetworks/${one.name}"},
    "google_dataflow_flex_template_job": {"job_id": "2030-01-01_00_00_00-1"},
    "google_monitoring_notification_channel": {"name": "projects/${var.project}/notificationChannels/1"},
    "google_project": {"number": "123456789012"},
    "google_pubsub_subscription": {"id": "projects/${var.project}/subscriptions/${one.name}"},
    "google_pubsub_topic": {"id": "projects/${var.project}/topics/${one.name}"},
    "google_secret_manager_secret": {"id": "projects/${var.project}/secrets/${one.secret_id}"},
    "google_service_account": {
        "email": EMAIL,
        "member": f"serviceAccount:{EMAIL}",
        "name": f"projects/${{var.project}}/serviceAccounts/{EMAIL}",
    },
}


class Refused(Exception):
    """Terraform could not work it out; it says why."""


def rehearse(folder: Path, variables: dict[str, str]) -> dict[str, Any]:
    """The outputs with the example's values and these, and as `resources` what was given to each by its address."""
    terraform = shutil.which("terraform")
    if terraform is None:
        raise Unavailable("there is no terraform here: the outputs were not worked out")
    with tempfile.TemporaryDirectory() as place:
        Path(place, "main.tf").write_text(as_locals(folder))
        shutil.copy(folder / "example.tfvars", place)
        given = [f"-var={name}={value}" for name, value in variables.items()]
        plan = ["plan", "-input=false", "-no-color", "-lock=false", "-out=plan", "-var-file=example.tfvars", *given]
        _run([terraform, *plan], place)
        shown = json.loads(_run([terraform, "show", "-json", "plan"], place))
    outputs = shown["planned_values"]["outputs"]
    return {name: output.get("value") for name, output in outputs.items()}


def as_locals(folder: Path) -> str:
    """The whole configuration as one file without a resource."""
    made, names = [], []
    for path in sorted(folder.glob("*.tf")):
        text = COMMENT.sub(lambda match: match[1] or "", path.read_text())
        for kind, labels, body in BLOCK.findall(text):
            if kind in ("resource", "data"):
                type_, name = re.findall(r'"([^"]+)"', labels)
                names.append(_name(kind == "data", type_, name))
                made.append(_local(names[-1], type_, body))
            elif kind in ("variable", "locals", "output"):
                made.append(f"{kind}{labels} {{\n{_referring(body)}}}")
    everything = "\n".join(f"    {name} = local.{name}" for name in names)
    return "\n\n".join([*made, f'output "resources" {{\n  value = {{\n{everything}\n  }}\n}}\n'])


def _local(name: str, type_: str, body: str) -> str:
    meta = dict(META.findall(body))
    body = DROPPED.sub("", META.sub("", body))
    given = "{\n" + NESTED.sub(r"\1\2 = {", body) + "}"
    answers = ", ".join(f'{key} = "{value}"' for key, value in ANSWERED.get(type_, {}).items())
    made = f"[for one in [{given}] : merge(one, {{ {answers} }})][0]"
    if "for_each" in meta:
        made = f"{{ for each_key, each_value in {meta['for_each']} : each_key => {made} }}"
    elif "count" in meta:
        made = f"[for _ in range({meta['count']}) : {made}]"
    made = re.sub(r"\beach\.(key|value)\b", r"each_\1", made)
    return f"locals {{\n  {name} = {_referring(made)}\n}}"


def _referring(text: str) -> str:
    return ADDRESS.sub(lambda match: f"local.{_name(bool(match[1]), match[2], match[3])}", text)


def _name(data: bool, type_: str, name: str) -> str:
    return f"{'data__' if data else ''}{type_}__{name}"


def _run(command: list[str], folder: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS)
    if done.returncode:
        text = done.stderr.partition("Error: ")[2] or done.stderr
        raise Refused(" ".join(re.sub(r"[│╷╵├─]", " ", text).split())[:400])
    return done.stdout
