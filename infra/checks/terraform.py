"""The Terraform files: by terraform itself as far as it comes without the provider, by the provider's own types, and by
what must be true of them here."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from common.errors import InputError
from infra.checks.check import Check
from infra.checks.cloud.hcl import Configuration, load
from infra.checks.cloud.provider import ATTRIBUTES, NEEDED, Schema, schemas
from infra.checks.cloud.rehearsal import Refused, rehearse
from infra.checks.tools import CHECKOV
from infra.dataflow.parameters import metadata
from infra.dataflow.template import OBJECT
from infra.local.processes import Unavailable
from pipelines.options import parse

FOLDER = "infra/terraform"
TERRAFORM_SECONDS, CHECKOV_SECONDS = 60, 900
META = {"provider", "for_each", "count", "depends_on", "lifecycle", "dynamic"}
REFERENCE = re.compile(r"\b(data\.)?(google_\w+)\.(\w+)(\[[^\]]*\])*(?:\.(\w+))?")
PRIMITIVE = re.compile(r"roles/(owner|editor|viewer)\b")
PUBLIC = re.compile(r"\ball(Authenticated)?Users\b")
# What holds a value that then lies in the state, or is one.
CLEAR = re.compile(
    r"^\s*(\w*(?:password|secret_data|token|api_key|private_key)\w*)\s*=\s*\"(?!\$\{)[^\"]+\"", re.MULTILINE
)
KEYS = ("google_secret_manager_secret_version", "google_service_account_key")
KEY = re.compile(r"(?:[{(,]|\n)\s*(\w+)\s*=(?!=)\s*(\"[^\"]*\")?")
LAUNCHES = {"stream_parameters": ("services",), "batch_parameters": ("services",)}


def formatted(root: Path) -> list[str]:
    done = _terraform(["fmt", "-check", "-list=true", "-no-color", "."], root / FOLDER)
    wrong = [line for line in done.stdout.split() if line.endswith((".tf", ".tfvars"))]
    lines = [f"{FOLDER}/{file}: not as `terraform fmt` writes it" for file in wrong]
    return lines or ([f"{FOLDER}: {_said(done)}"] if done.returncode else [])


def accepted(root: Path) -> list[str]:
    """The variables, their types and bounds, with the example's values: terraform needs no provider for these."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("variables.tf", "example.tfvars"):
            shutil.copy(root / FOLDER / name, folder)
        done = _terraform(
            ["plan", "-input=false", "-no-color", "-lock=false", "-var-file=example.tfvars"], Path(folder)
        )
    return [f"{FOLDER}/example.tfvars: {_said(done)}"] if done.returncode else []


def consistent(root: Path) -> list[str]:
    """Names that are used are defined, and the other way round; every variable and output is explained."""
    made = load(root / FOLDER, root)
    lines = [*made.faults, *_undefined(made)]
    used = "\n".join(made.text.values())
    for name, body in made.variables.items():
        place = made.places["variable", name]
        lines += [f"{place}: variable {name} has no {need}" for need in ("description", "type") if need not in body]
        if not re.search(rf"\bvar\.{name}\b", used.replace(_block(made.text[place], name), "")):
            lines.append(f"{place}: variable {name} is used nowhere")
    lines += [
        f"{made.places['output', name]}: output {name} has no description"
        for name, body in made.outputs.items()
        if "description" not in body
    ]
    return lines


def _undefined(made: Configuration) -> list[str]:
    lines = []
    for place, text in made.text.items():
        for name in sorted({*re.findall(r"\bvar\.(\w+)", text)} - made.variables.keys()):
            lines.append(f"{place}: var.{name} is not defined")
        for name in sorted({*re.findall(r"\blocal\.(\w+)", text)} - made.locals.keys()):
            lines.append(f"{place}: local.{name} is not defined")
        for data, kind, name, *_ in sorted(set(REFERENCE.findall(text))):
            if (f"{data}{kind}", name) not in made.resources:
                lines.append(f"{place}: {data}{kind}.{name} is not defined")
    return lines


def _block(text: str, name: str) -> str:
    found = re.search(rf'^variable "{name}" \{{.*?^\}}', text, re.MULTILINE | re.DOTALL)
    return found[0] if found else ""


def guarded(root: Path) -> list[str]:
    """No secret in clear, no role over everything, nothing open to everybody."""
    made = load(root / FOLDER, root)
    lines = list(made.faults)
    texts = {**made.text, **{f"{FOLDER}/{path.name}": path.read_text() for path in (root / FOLDER).glob("*.tfvars")}}
    for place, text in texts.items():
        lines += [
            f"{place}: {name} is a secret in clear; add it to Secret Manager by hand" for name in CLEAR.findall(text)
        ]
        lines += [
            f"{place}: roles/{role} is over everything; name a role for the work" for role in PRIMITIVE.findall(text)
        ]
        lines += [f"{place}: everybody is let in" for _ in PUBLIC.findall(text)]
    for kind, name in made.resources:
        if kind in KEYS:
            lines.append(f"{made.places[kind, name]}: {kind}.{name} writes a secret into the state")
    return lines


def fits_template(root: Path) -> list[str]:
    """What jobs are given are the template's parameters, and the template is where it is put; alerts have a runbook."""
    made = load(root / FOLDER, root)
    known = {one["name"]: one for one in metadata()["parameters"]}
    needed = {name for name, one in known.items() if not one["isOptional"]}
    place, lines = f"{FOLDER}/dataflow.tf", list(made.faults)
    for launch, others in LAUNCHES.items():
        given = dict(pair for name in (launch, *others) for pair in KEY.findall(made.local_text(name)))
        lines += [f"{place}: {launch}: {name} is no parameter of the template" for name in given if name not in known]
        lines += [f"{place}: {launch}: the template needs {name}" for name in sorted(needed - given.keys())]
        for name, value in given.items():
            patterns = known[name]["regexes"] if name in known and value and "${" not in value else []
            lines += [f"{place}: {launch}: {name} = {value} is not as {pattern} wants it"
                      for pattern in patterns if not re.search(pattern, value.strip('"'))]  # fmt: skip
    if not made.local_text("template").rstrip().rstrip('"').endswith(f"/{OBJECT}"):
        lines.append(f"{place}: the template is put into the bucket as {OBJECT}")
    runbook = (root / FOLDER / "README.md").read_text()
    alerts = made.locals.get("alerts") or [{}]
    lines += [
        f"{FOLDER}/README.md: no section `### {alert}` for that alert"
        for alert in alerts[0]
        if f"\n### {alert}\n" not in runbook
    ]
    return lines


def rehearsed(root: Path) -> list[str]:
    """All of it worked out with the example's values, and what jobs would be given then held against the pipeline."""
    try:
        made = rehearse(root / FOLDER, {"stream": "true"})["resources"]
        request = base64.b64decode(made["google_cloud_scheduler_job__batch"][0]["http_target"]["body"])
        jobs = {
            "stream": made["google_dataflow_flex_template_job__stream"][0]["parameters"],
            "batch": json.loads(request)["launchParameter"]["parameters"],
        }
    except Refused as error:
        return [f"{FOLDER}: {error}"]
    return [f"{FOLDER}: {job}: {fault}" for job, given in jobs.items() for fault in _refused(given)]


def _refused(given: dict[str, str]) -> list[str]:
    """By the template's patterns, and by the pipeline's own flags as the launcher gives them."""
    patterns = {one["name"]: one["regexes"] for one in metadata()["parameters"]}
    faults = [f"{name} = {value} is not as {pattern} wants it" for name, value in given.items()
              for pattern in patterns.get(name, []) if not re.search(pattern, value)]  # fmt: skip
    told = io.StringIO()
    try:
        with contextlib.redirect_stderr(told):
            parse([*(f"--{name}={value}" for name, value in given.items()), "--runner=DataflowRunner"])
    except SystemExit:
        faults.append(f"pipelines.encode says {told.getvalue().strip()}")
    except InputError as error:
        faults.append(f"pipelines.encode says {error}")
    return faults


def known_to_provider(root: Path) -> list[str]:
    """Types, arguments of resources and blocks, what must be given, and the attributes that others ask for."""
    made = load(root / FOLDER, root)
    known, lines = schemas({kind for kind, _ in made.resources}), list(made.faults)
    for (kind, name), body in made.resources.items():
        place = f"{made.places[kind, name]}: {kind}.{name}"
        if kind not in known:
            lines.append(f"{place}: the provider knows no such type")
        else:
            lines += [f"{place}: {fault}" for fault in _faults(body, known[kind], META)]
    for place, text in made.text.items():
        for data, kind, name, _, attribute in sorted(set(REFERENCE.findall(text))):
            schema = known.get(f"{data}{kind}")
            if schema and attribute and attribute not in (*schema, *schema[ATTRIBUTES]):
                lines.append(f"{place}: {data}{kind}.{name} has no {attribute}")
    return lines


def _faults(body: dict[str, Any], schema: Schema, allowed: set[str]) -> list[str]:
    given = {name: value for name, value in body.items() if not name.startswith("__")}
    dynamic = [block for block in given.get("dynamic", []) if isinstance(block, dict)] if "dynamic" in allowed else []
    blocks = [
        (name, one) for name, value in given.items() if name not in allowed for one in _blocks(value, schema.get(name))
    ]
    blocks += [(name, one) for block in dynamic for name, inner in block.items() for one in inner["content"]]
    names = given.keys() - allowed | {name for name, _ in blocks}
    faults = [f"{name} is no argument" for name in sorted(names) if name not in schema]
    faults += [f"{name} is missing" for name in schema[NEEDED] if name not in names]
    for name, one in blocks:
        if schema.get(name) is not None:
            faults += [f"{name}: {fault}" for fault in _faults(one, schema[name], {"dynamic"})]
    return faults


def _blocks(value: Any, schema: Schema | None) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if schema is not None and isinstance(value, list) else []


def by_checkov(root: Path) -> list[str]:
    """What is skipped says why, beside its line."""
    command = [*CHECKOV, "--quiet", "--compact", "--framework", "terraform", "--directory", str(root / FOLDER)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=CHECKOV_SECONDS)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"checkov was not done within {CHECKOV_SECONDS} s") from None
    failed = re.findall(r"Check: (\w+): \"([^\"]*)\"\s+FAILED for resource: (\S+)", done.stdout)
    if done.returncode and not failed:
        raise Unavailable(f"checkov does not run here: {' '.join(done.stderr.split())[-300:]}")
    return [f"{FOLDER}: {where}: {code} {what}" for code, what, where in failed]


def _terraform(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    found = shutil.which("terraform")
    if found is None:
        raise Unavailable("there is no terraform here: format and variables were not checked")
    return subprocess.run([found, *arguments], cwd=folder, capture_output=True, text=True, timeout=TERRAFORM_SECONDS)


def _said(done: subprocess.CompletedProcess[str]) -> str:
    text = done.stderr.partition("Error: ")[2] or done.stdout + done.stderr
    return " ".join(re.sub(r"[│╷╵├─]", " ", text).split())[:300]


CHECKS = [
    Check("terraform: format", formatted),
    Check("terraform: variables and example", accepted),
    Check("terraform: names and references", consistent),
    Check("terraform: secrets and roles", guarded),
    Check("terraform: jobs fit the template", fits_template),
    Check("terraform: worked out", rehearsed),
    Check("terraform: known to the provider", known_to_provider),
    Check("terraform: checkov", by_checkov, slow=True),
]
