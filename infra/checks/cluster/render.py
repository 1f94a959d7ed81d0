"""What an overlay really is: the objects that Kustomize makes of it, and the pods that come of those."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from infra.local.go import build

Object = dict[str, Any]

FOLDER = Path("infra") / "kubernetes"
KUSTOMIZE = "v5.8.1"
RENDER_SECONDS = 120
_rendered: dict[str, str | list[Object]] = {}


@dataclass(frozen=True)
class Pod:
    """Of a Deployment, a CronJob, or a node set of Elasticsearch, whose operator fills in what is left out."""

    owner: str
    labels: dict[str, str]
    spec: Object

    @property
    def containers(self) -> list[Object]:
        return [*self.spec.get("initContainers", []), *self.spec.get("containers", [])]


@dataclass(frozen=True)
class Overlay:
    """`name` is its folder, as findings tell it."""

    name: str
    objects: list[Object]
    text: str = field(repr=False, default="")

    def of(self, kind: str) -> list[Object]:
        return [one for one in self.objects if one["kind"] == kind]

    def find(self, kind: str, name: str) -> Object | None:
        return next((one for one in self.of(kind) if one["metadata"]["name"] == name), None)

    def pods(self) -> list[Pod]:
        return [pod for one in self.objects for pod in _pods(one)]

    def settings(self, name: str) -> dict[str, str]:
        """Of a ConfigMap; none where there is none."""
        return (self.find("ConfigMap", name) or {}).get("data", {})

    def finding(self, one: Object | Pod, said: str) -> str:
        return f"{self.name}: {one.owner if isinstance(one, Pod) else title(one)}: {said}"


def title(one: Object) -> str:
    return f"{one['kind']}/{one['metadata']['name']}"


def labels(one: Object) -> dict[str, str]:
    return one["metadata"].get("labels", {})


def _pods(one: Object) -> list[Pod]:
    spec = one.get("spec", {})
    if one["kind"] == "Elasticsearch":
        return [_pod(f"{title(one)} {each['name']}", each.get("podTemplate", {})) for each in spec.get("nodeSets", [])]
    if one["kind"] == "CronJob":
        return [_pod(title(one), spec["jobTemplate"]["spec"]["template"])]
    return [_pod(title(one), spec["template"])] if "template" in spec else []


def _pod(owner: str, template: Object) -> Pod:
    return Pod(owner, template.get("metadata", {}).get("labels", {}), template.get("spec", {}))


def overlays(root: Path) -> list[Overlay]:
    """Those that render; of the others `unrendered` tells."""
    made = [(folder, _render(root, folder)) for folder in folders(root)]
    return [
        Overlay(folder.relative_to(root).as_posix(), objects, yaml.safe_dump_all(objects))
        for folder, objects in made
        if not isinstance(objects, str)
    ]


def unrendered(root: Path) -> list[str]:
    made = [(folder, _render(root, folder)) for folder in folders(root)]
    failed = [f"{folder.relative_to(root).as_posix()}: {said}" for folder, said in made if isinstance(said, str)]
    return failed if made else [f"{FOLDER.as_posix()}/overlays: there is no overlay"]


def folders(root: Path) -> list[Path]:
    return sorted(path.parent for path in (root / FOLDER / "overlays").glob("*/kustomization.yaml"))


def _render(root: Path, folder: Path) -> str | list[Object]:
    """Its objects, or why there are none; once for the same files."""
    files = sorted(path for path in (root / FOLDER).rglob("*") if path.is_file())
    content = hashlib.sha256(b"\0".join(str(path).encode() + b"\0" + path.read_bytes() for path in files))
    key = f"{folder} {content.hexdigest()}"
    if key not in _rendered:
        run = subprocess.run([*_kustomize(), str(folder)], capture_output=True, text=True, timeout=RENDER_SECONDS)
        said = " ".join(run.stderr.split())
        _rendered[key] = said if run.returncode else [one for one in yaml.safe_load_all(run.stdout) if one]
    return _rendered[key]


def _kustomize() -> list[str]:
    """kubectl has it; where there is none, it is built by itself."""
    kubectl = shutil.which("kubectl")
    if kubectl:
        return [kubectl, "kustomize"]
    program = f"sigs.k8s.io/kustomize/kustomize/v5@{KUSTOMIZE}"
    return [str(build("kustomize", KUSTOMIZE, [program])), "build"]
