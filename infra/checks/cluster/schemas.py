"""Objects held against schemas: Kubernetes' own by kubernetes-validate, other kinds by the definitions of their
operators, which Go's registry has."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from infra.checks.cluster.render import Object, Overlay, overlays
from infra.checks.tools import python_tool
from infra.local.processes import Unavailable

KUBERNETES = "1.34.1"
# kind -> the module whose sources hold its CustomResourceDefinition, and the file there
DEFINITIONS = {
    "ServiceMonitor": (
        "github.com/prometheus-operator/prometheus-operator@v0.85.0",
        "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
    ),
    "PrometheusRule": (
        "github.com/prometheus-operator/prometheus-operator@v0.85.0",
        "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
    ),
    "Elasticsearch": (
        "github.com/elastic/cloud-on-k8s/v3@v3.5.0",
        "config/crds/v1/all-crds.yaml",
    ),
}
FETCH_SECONDS = 300
CHECK_SECONDS = 120


def against_kubernetes(root: Path) -> list[str]:
    return [found for overlay in overlays(root) for found in _kubernetes(overlay)]


def _kubernetes(overlay: Overlay) -> Iterator[str]:
    own = [one for one in overlay.objects if one["kind"] not in DEFINITIONS] + list(_templates(overlay))
    with tempfile.TemporaryDirectory(prefix="schemas-") as folder:
        file = Path(folder) / "objects.yaml"
        file.write_text(yaml.safe_dump_all(own))
        command = [str(python_tool("kubernetes-validate")), "--strict", "--quiet", "-k", KUBERNETES, str(file)]
        run = subprocess.run(command, capture_output=True, text=True, timeout=CHECK_SECONDS)
        said = [line for line in (run.stdout + run.stderr).splitlines() if line.startswith(("ERROR", "WARN"))]
        if run.returncode and not said:
            raise Unavailable(f"kubernetes-validate failed: {' '.join(run.stderr.split())[-300:]}")
        for line in said:
            told = line.replace(str(file), "").removeprefix("ERROR").removeprefix("WARN").strip()
            yield f"{overlay.name}: {re.sub(r'^did not validate for resource ', '', told)}"


def _templates(overlay: Overlay) -> Iterator[Object]:
    """Pods of an Elasticsearch: its definition lets anything pass there."""
    for one in overlay.of("Elasticsearch"):
        for each in one["spec"]["nodeSets"]:
            name = f"{one['metadata']['name']}-{each['name']}"
            yield {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": name},
                   "template": each.get("podTemplate", {})}  # fmt: skip


def against_definitions(root: Path) -> list[str]:
    chosen = [(overlay, one) for overlay in overlays(root) for one in overlay.objects if one["kind"] in DEFINITIONS]
    found = []
    with tempfile.TemporaryDirectory(prefix="schemas-") as folder:
        for kind in sorted({one["kind"] for _, one in chosen}):
            schema = Path(folder) / f"{kind}.json"
            schema.write_text(json.dumps(closed(definition_schema(kind))))
            told = {}
            for number, (overlay, one) in enumerate(chosen):
                if one["kind"] == kind:
                    file = Path(folder) / f"{number}.json"
                    file.write_text(json.dumps(one))
                    told[str(file)] = (overlay, one)
            for file_name, path, message in _violations(schema, list(told)):
                overlay, one = told[file_name]
                found.append(overlay.finding(one, f"{path}: {message}"))
    return found


def _violations(schema: Path, files: list[str]) -> Iterator[tuple[str, str, str]]:
    command = [str(python_tool("check-jsonschema")), "--schemafile", str(schema), "--output-format", "json", *files]
    run = subprocess.run(command, capture_output=True, text=True, timeout=CHECK_SECONDS)
    try:
        said = json.loads(run.stdout)
    except ValueError:
        raise Unavailable(f"check-jsonschema failed: {' '.join(run.stderr.split())[-300:]}") from None
    for one in (*said.get("errors", []), *said.get("parse_errors", [])):
        yield one["filename"], one.get("path", ""), one.get("message", "")


@lru_cache
def definition(kind: str) -> Object:
    """The CustomResourceDefinition as its operator ships it."""
    with definition_file(kind).open() as file:
        made = yaml.load_all(file, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # ten times faster
        return next(one for one in made if one and one["spec"]["names"]["kind"] == kind)


def definition_file(kind: str) -> Path:
    module, path = DEFINITIONS[kind]
    go = shutil.which("go")
    if go is None:
        raise Unavailable(f"the definition of {kind} comes as a Go module and there is no `go` here; install Go")
    # -modcacherw: Go's module folders are read-only otherwise, and a plain `rm -r` of them fails.
    environment = {**os.environ, "GOFLAGS": f"{os.environ.get('GOFLAGS', '')} -modcacherw".strip()}
    with tempfile.TemporaryDirectory(prefix="go-") as folder:
        run = subprocess.run(
            [go, "mod", "download", "-json", module],
            cwd=folder, env=environment, capture_output=True, text=True, timeout=FETCH_SECONDS,
        )  # fmt: skip
    if run.returncode:
        raise Unavailable(f"Go did not fetch {module}: {' '.join((run.stdout + run.stderr).split())[-300:]}")
    return Path(json.loads(run.stdout)["Dir"]) / path


def definition_schema(kind: str) -> Any:
    (version,) = [one for one in definition(kind)["spec"]["versions"] if one["storage"]]
    return version["schema"]["openAPIV3Schema"]


def closed(schema: Any) -> Any:
    """Fields that the schema does not name are refused, as the API server does under strict validation."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: closed(value) for name, value in schema.items()}
    free = schema.get("x-kubernetes-preserve-unknown-fields") or "additionalProperties" in schema
    if isinstance(schema.get("properties"), dict) and not free and schema.get("type") == "object":
        named = schema["properties"].keys() >= {"apiVersion", "kind", "metadata"}
        made["additionalProperties"] = False
        if named:  # any object's own
            made["properties"]["metadata"] = {"type": "object"}
    return made
