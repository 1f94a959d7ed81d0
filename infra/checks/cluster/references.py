"""Whatever a pod names is there: made by this overlay, by an operator, or by a command of the README; and secrets are
named, never written down."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from infra.checks.cluster.render import FOLDER, Object, Overlay, overlays

SECRET_WORD = re.compile(r"PASSWORD|SECRET|TOKEN|API_?KEY|CREDENTIAL", re.IGNORECASE)
IN_CLEAR = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY|://[^/\s:@]+:[^/\s@]+@")
PUBLIC_KEYS = {"roles.yml"}  # what Elasticsearch's operator takes from a Secret though nothing in it is secret
CREATED = re.compile(r"create secret (?:generic|tls) (\S+)((?:[^\n]*\\\n)*[^\n]*)")
Keys = set[str] | None  # None: whatever is asked for


def wrong_references(root: Path) -> list[str]:
    brought = _brought(root)
    return [found for overlay in overlays(root) for found in _missing(overlay, brought)]


def secrets_in_clear(root: Path) -> list[str]:
    found = [found for overlay in overlays(root) for found in _written(overlay)]
    for path in sorted((root / FOLDER).rglob("*")):
        if path.is_file() and IN_CLEAR.search(path.read_text()):
            found.append(f"{path.relative_to(root).as_posix()}: holds a password or a private key")
    return found


def _brought(root: Path) -> dict[tuple[str, str], Keys]:
    """Secrets that the README tells to create, with their keys."""
    made: dict[tuple[str, str], Keys] = {}
    for name, rest in CREATED.findall((root / FOLDER / "README.md").read_text()):
        keys = set(re.findall(r"--from-(?:literal|file)=([\w.-]+)", rest))
        made["Secret", name] = keys or {"tls.crt", "tls.key"}
    return made


def _there(overlay: Overlay) -> dict[tuple[str, str], Keys]:
    made: dict[tuple[str, str], Keys] = {
        (one["kind"], one["metadata"]["name"]): set(one["data"]) if "data" in one else None for one in overlay.objects
    }
    for one in overlay.of("Elasticsearch"):  # its operator's
        made["Secret", f"{one['metadata']['name']}-es-http-certs-public"] = {"ca.crt", "tls.crt"}
    return made


def _missing(overlay: Overlay, brought: dict[tuple[str, str], Keys]) -> Iterator[str]:
    # What is here comes first: a name that the README brings for another overlay may be an operator's in this one.
    known = {**brought, **_there(overlay)}
    for who, kind, name, keys in _named(overlay):
        if (kind, name) not in known:
            yield f"{overlay.name}: {who}: there is no {kind} {name}, here or among those that the README creates"
        for key in sorted(keys - (known.get((kind, name)) or keys)):
            yield f"{overlay.name}: {who}: {kind} {name} has no key {key}"


def _named(overlay: Overlay) -> Iterator[tuple[str, str, str, set[str]]]:
    """Who, and the kind, the name and the keys of what is referred to."""
    for pod in overlay.pods():
        if "serviceAccountName" in pod.spec:
            yield pod.owner, "ServiceAccount", pod.spec["serviceAccountName"], set()
        for volume in pod.spec.get("volumes", []):
            for kind, name, items in _volume(volume):
                yield pod.owner, kind, name, {item["key"] for item in items}
        for container in pod.containers:
            for kind, name, keys in _variables(container):
                yield pod.owner, kind, name, keys
    for one in overlay.of("Ingress"):
        for tls in one["spec"].get("tls", []):
            yield "Ingress", "Secret", tls["secretName"], {"tls.crt", "tls.key"}
    for one in overlay.of("Elasticsearch"):
        auth = one["spec"].get("auth", {})
        for each in auth.get("fileRealm", []):
            yield "Elasticsearch", "Secret", each["secretName"], {"username", "password", "roles"}
        for each in auth.get("roles", []):
            yield "Elasticsearch", "Secret", each["secretName"], {"roles.yml"}


def _volume(volume: Object) -> Iterator[tuple[str, str, list[Any]]]:
    if "secret" in volume:
        yield "Secret", volume["secret"]["secretName"], volume["secret"].get("items", [])
    if "configMap" in volume:
        yield "ConfigMap", volume["configMap"]["name"], volume["configMap"].get("items", [])
    if "persistentVolumeClaim" in volume:
        yield "PersistentVolumeClaim", volume["persistentVolumeClaim"]["claimName"], []


def _variables(container: Object) -> Iterator[tuple[str, str, set[str]]]:
    for source in container.get("envFrom", []):
        for field, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            if field in source:
                yield kind, source[field]["name"], set()
    for one in container.get("env", []):
        for field, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
            named = one.get("valueFrom", {}).get(field)
            if named:
                yield kind, named["name"], {named["key"]}


def _written(overlay: Overlay) -> Iterator[str]:
    for one in overlay.of("Secret"):
        held = {*one.get("data", {}), *one.get("stringData", {})} - PUBLIC_KEYS
        if held:
            yield overlay.finding(one, f"holds {', '.join(sorted(held))} in clear; create it in the cluster alone")
    for one in overlay.of("ConfigMap"):
        for name in one.get("data", {}):
            if SECRET_WORD.search(name):
                yield overlay.finding(one, f"{name} is a secret by its name; refer to a Secret")
    for pod in overlay.pods():
        for container in pod.containers:
            for each in container.get("env", []):
                if "value" in each and SECRET_WORD.search(each["name"]) and not each["name"].endswith("_FILE"):
                    yield overlay.finding(pod, f"{each['name']} is written down; refer to a Secret")
