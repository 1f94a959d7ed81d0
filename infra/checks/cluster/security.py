"""Restricted Pod Security, and what it leaves open: a read-only root, no token of the cluster, bounds on resources."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from infra.checks.cluster.render import Object, Overlay, Pod, overlays

LEVEL = "pod-security.kubernetes.io/enforce"
HOST = ("hostNetwork", "hostPID", "hostIPC")
VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}


def insecure(root: Path) -> list[str]:
    return [found for overlay in overlays(root) for found in _overlay(overlay)]


def _overlay(overlay: Overlay) -> Iterator[str]:
    for one in overlay.of("Namespace"):
        if one["metadata"].get("labels", {}).get(LEVEL) != "restricted":
            yield overlay.finding(one, f"its label {LEVEL} is not restricted")
    spaces = {one["metadata"]["name"] for one in overlay.of("Namespace")}
    for one in overlay.objects:
        if one["kind"] != "Namespace" and one["metadata"].get("namespace") not in spaces:
            yield overlay.finding(
                one, f"is in namespace {one['metadata'].get('namespace')}, which is not of this overlay"
            )
    for pod in overlay.pods():
        yield from (overlay.finding(pod, said) for said in _pod(pod))
        for container in pod.containers:
            yield from (overlay.finding(pod, f"{container['name']} {said}") for said in _container(pod, container))


def _pod(pod: Pod) -> Iterator[str]:
    for name in HOST:
        if pod.spec.get(name):
            yield f"{name} lets it out of its own"
    for volume in pod.spec.get("volumes", []):
        for kind in volume.keys() - {"name"} - VOLUMES:
            yield f"volume {volume['name']} is a {kind}, which restricted pods may not have"
    if pod.spec.get("automountServiceAccountToken") is not False:
        yield "is given a token of the cluster that it has no use for (automountServiceAccountToken)"


def _container(pod: Pod, container: Object) -> Iterator[str]:
    whole, own = pod.spec.get("securityContext", {}), container.get("securityContext", {})
    context = {**whole, **own}
    if context.get("runAsNonRoot") is not True or context.get("runAsUser", 0) == 0:
        yield "may run as root: runAsNonRoot and a runAsUser above 0 are missing"
    if context.get("seccompProfile", {}).get("type") not in ("RuntimeDefault", "Localhost"):
        yield "has no seccompProfile"
    if own.get("privileged") or own.get("allowPrivilegeEscalation") is not False:
        yield "may gain privileges (allowPrivilegeEscalation)"
    if own.get("readOnlyRootFilesystem") is not True:
        yield "may write to its root file system (readOnlyRootFilesystem)"
    capabilities = own.get("capabilities", {})
    if "ALL" not in capabilities.get("drop", []) or capabilities.get("add"):
        yield "keeps capabilities; drop ALL"
    resources = container.get("resources", {})
    for kind in ("requests", "limits"):
        for name in {"cpu", "memory"} - resources.get(kind, {}).keys():
            yield f"{kind} no {name}" if kind == "requests" else f"has no limit of {name}"
    mounted = {one["mountPath"] for one in container.get("volumeMounts", [])}
    if "image" in container and "/tmp" not in mounted:
        yield "has a read-only root and no /tmp"
