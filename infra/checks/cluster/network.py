"""Who reaches whom by the NetworkPolicies, worked out pod by pod, against who has to by his command line."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path

from infra.checks.cluster.render import Object, Overlay, Pod, overlays
from infra.checks.cluster.wiring import matches, ports

SERVING, SEARCH = "Deployment/pause-serving", "Deployment/pause-search"
GRPC, HTTP, TRANSPORT = 8500, 9200, 9300
OWN = {"kubernetes.io/metadata.name": "pause"}
DNS = Pod("kube-dns", {"k8s-app": "kube-dns"}, {})
KUBE_SYSTEM = {"kubernetes.io/metadata.name": "kube-system"}
ECK = {"kubernetes.io/metadata.name": "elastic-system"}
STRANGER = Pod("a pod of another namespace", {}, {})
# Ports that a namespace with such labels may reach, by the pods' owner; all others none.
FROM_OUTSIDE: list[tuple[dict[str, str], dict[str, set[int]]]] = [
    ({}, {}),
    ({"pause/ingress": "true"}, {SEARCH: {8000}}),
    ({"pause/monitoring": "true"}, {SERVING: {8501}, SEARCH: {8000}, "Deployment/pause-stream": {9400}}),
    (ECK, {"Elasticsearch": {HTTP}}),
]


def wrong_reach(root: Path) -> list[str]:
    return [
        found for overlay in overlays(root) for check in (_denied, _inside, _outside, _away) for found in check(overlay)
    ]


def _denied(overlay: Overlay) -> Iterator[str]:
    """Whatever comes later is closed before anybody thinks of it."""
    closed = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    if not any(one["spec"] == closed for one in overlay.of("NetworkPolicy")):
        yield f"{overlay.name}: no NetworkPolicy denies what no other one allows"


def _inside(overlay: Overlay) -> Iterator[str]:
    pods = overlay.pods()
    for source in pods:
        if not _leaves(overlay, source, DNS, KUBE_SYSTEM, 53):
            yield overlay.finding(source, "may not ask the name server")
        for target in pods:
            for port in _listening(target):
                may = _leaves(overlay, source, target, None, port) and _enters(overlay, source, None, target, port)
                if may != _needs(source, target, port):
                    verb = "reaches" if may else "cannot reach"
                    yield overlay.finding(source, f"{verb} port {port} of {target.owner}; see the NetworkPolicies")


def _outside(overlay: Overlay) -> Iterator[str]:
    for namespace, allowed in FROM_OUTSIDE:
        for target in overlay.pods():
            expected = allowed.get(target.owner, set()) | allowed.get(target.owner.partition("/")[0], set())
            for port in _listening(target):
                if _enters(overlay, STRANGER, namespace, target, port) != (port in expected):
                    verb = "is closed" if port in expected else "is open"
                    yield overlay.finding(target, f"port {port} {verb} to namespaces labelled {namespace or 'anyhow'}")


def _away(overlay: Overlay) -> Iterator[str]:
    """An Elasticsearch elsewhere has to be reached, too."""
    if overlay.of("Elasticsearch"):
        return
    for pod in overlay.pods():
        reaches = any(_lets_out(rule, HTTP) for rule in _rules(overlay, pod, "egress"))
        if reaches != _given(pod, "--index"):
            yield overlay.finding(pod, f"{'reaches' if reaches else 'cannot reach'} port {HTTP} outside")


def _lets_out(rule: Object, port: int) -> bool:
    return _at(rule, port) and any("ipBlock" in peer for peer in rule.get("to", [{"ipBlock": {}}]))


def _listening(pod: Pod) -> list[int]:
    return [HTTP, TRANSPORT] if _is_elasticsearch(pod) else sorted(ports(pod).values())


def _is_elasticsearch(pod: Pod) -> bool:
    return pod.owner.startswith("Elasticsearch/")


def _given(pod: Pod, flag: str) -> bool:
    return any(one.startswith(f"{flag}=") for container in pod.containers for one in container.get("args", []))


def _needs(source: Pod, target: Pod, port: int) -> bool:
    if _is_elasticsearch(target):
        return _is_elasticsearch(source) or (port == HTTP and _given(source, "--index"))
    return target.owner == SERVING and port == GRPC and _given(source, "--serving")


def _leaves(overlay: Overlay, source: Pod, target: Pod, namespace: dict[str, str] | None, port: int) -> bool:
    rules = _rules(overlay, source, "egress")
    return any(_at(rule, port) and _among(rule.get("to"), target, namespace) for rule in rules)


def _enters(overlay: Overlay, source: Pod, namespace: dict[str, str] | None, target: Pod, port: int) -> bool:
    rules = _rules(overlay, target, "ingress")
    return any(_at(rule, port) and _among(rule.get("from"), source, namespace) for rule in rules)


def _rules(overlay: Overlay, pod: Pod, direction: str) -> list[Object]:
    """Of all policies that bind this pod in that direction; one that allows all where none does."""
    bound = [
        one["spec"]
        for one in overlay.of("NetworkPolicy")
        if matches(one["spec"]["podSelector"], pod.labels)
        and direction.capitalize() in one["spec"].get("policyTypes", ["Ingress"])
    ]
    return [rule for spec in bound for rule in spec.get(direction, [])] if bound else [{}]


def _at(rule: Object, port: int) -> bool:
    return "ports" not in rule or any(
        one.get("port", port) <= port <= one.get("endPort", one.get("port", port)) for one in rule["ports"]
    )


def _among(peers: list[Object] | None, pod: Pod, namespace: dict[str, str] | None) -> bool:
    """`namespace` has the labels of another one; None is the policies' own."""
    return not peers or any(_is(peer, pod, namespace) for peer in peers)


def _is(peer: Object, pod: Pod, namespace: dict[str, str] | None) -> bool:
    if "ipBlock" in peer:
        return ip_network(peer["ipBlock"]["cidr"]).prefixlen == 0  # which takes pods in, whatever their addresses
    if "namespaceSelector" not in peer:
        return namespace is None and matches(peer["podSelector"], pod.labels)
    there = matches(peer["namespaceSelector"], OWN if namespace is None else namespace)
    return there and matches(peer.get("podSelector", {}), pod.labels)
