"""Objects that name each other: selectors and the labels of pods, ports and their names, autoscalers and budgets.

No schema knows any of this: a Service whose selector matches nobody is a valid object."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from infra.checks.cluster.commands import scraped
from infra.checks.cluster.render import Object, Overlay, Pod, labels, overlays
from infra.local.distribution import VERSION

ELASTICSEARCH_PORTS = {9200, 9300}  # its operator declares them


def matches(selector: Object | None, given: dict[str, str]) -> bool:
    """A LabelSelector; an empty one matches all, none at all matches nobody."""
    if selector is None:
        return False
    pairs = selector.get("matchLabels", {}).items()
    return all(given.get(key) == value for key, value in pairs) and all(
        _holds(one, given) for one in selector.get("matchExpressions", [])
    )


def _holds(rule: Object, given: dict[str, str]) -> bool:
    value, values = given.get(rule["key"]), rule.get("values", [])
    return {
        "In": value in values,
        "NotIn": value not in values,
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }[rule["operator"]]


def ports(pod: Pod) -> dict[str, int]:
    """By name, of all its containers."""
    return {
        one.get("name", ""): one["containerPort"] for container in pod.containers for one in container.get("ports", [])
    }


def wrong_wiring(root: Path) -> list[str]:
    checks = (_workloads, _services, _budgets, _autoscalers, _policies, _monitors, _ingresses, _addresses, _versions)
    return [found for overlay in overlays(root) for check in checks for found in check(overlay)]


def _workloads(overlay: Overlay) -> Iterator[str]:
    for one in overlay.of("Deployment"):
        if not matches(one["spec"]["selector"], one["spec"]["template"]["metadata"].get("labels", {})):
            yield overlay.finding(one, "its selector does not match the labels of its own pods")
    for pod in overlay.pods():
        for rule in pod.spec.get("topologySpreadConstraints", []):
            operators = "elasticsearch.k8s.elastic.co/statefulset-name"  # a label that its operator gives
            if not matches(rule.get("labelSelector"), {**pod.labels, operators: _stateful_set(pod)}):
                yield overlay.finding(pod, "a topology spread constraint counts other pods than its own")
        longest = max((_sleep(one) for one in pod.containers), default=0)
        if longest >= pod.spec.get("terminationGracePeriodSeconds", 30):
            yield overlay.finding(pod, f"preStop sleeps {longest} s, and the pod is killed before it is over")


def _stateful_set(pod: Pod) -> str:
    kind, _, names = pod.owner.partition("/")
    return "-es-".join(names.split(" ")) if kind == "Elasticsearch" else ""


def _sleep(container: Object) -> int:
    return int(container.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0))


def _services(overlay: Overlay) -> Iterator[str]:
    for one in overlay.of("Service"):
        behind = [pod for pod in overlay.pods() if _behind(one, pod)]
        if not behind:
            yield overlay.finding(one, f"its selector matches no pod: {one['spec']['selector']}")
        for port in one["spec"]["ports"]:
            target = port.get("targetPort", port["port"])
            for pod in behind:
                if target not in ports(pod) and target not in ports(pod).values():
                    yield overlay.finding(
                        one, f"its port {port['name']} is for {target}, and {pod.owner} has none such"
                    )


def _behind(service: Object, pod: Pod) -> bool:
    return matches({"matchLabels": service["spec"]["selector"]}, pod.labels)


def _budgets(overlay: Overlay) -> Iterator[str]:
    for one in overlay.of("PodDisruptionBudget"):
        spec = one["spec"]
        if not any(matches(spec.get("selector"), pod.labels) for pod in overlay.pods()):
            yield overlay.finding(one, f"its selector matches no pod: {spec.get('selector')}")
        if spec.get("maxUnavailable") in (0, "0%") or spec.get("minAvailable") == "100%":
            yield overlay.finding(one, "no pod may ever be evicted, so that no node can be drained")
        least = spec.get("minAvailable")
        for scaler in overlay.of("HorizontalPodAutoscaler"):
            target = overlay.find("Deployment", scaler["spec"]["scaleTargetRef"]["name"]) or {"spec": {}}
            own = target["spec"].get("template", {}).get("metadata", {}).get("labels", {})
            if isinstance(least, int) and matches(spec.get("selector"), own) and least >= _least(scaler):
                yield overlay.finding(one, f"minAvailable {least} of {_least(scaler)} pods: no node can be drained")


def _least(scaler: Object) -> int:
    return int(scaler["spec"].get("minReplicas", 1))


def _autoscalers(overlay: Overlay) -> Iterator[str]:
    for one in overlay.of("HorizontalPodAutoscaler"):
        spec = one["spec"]
        if _least(one) > spec["maxReplicas"]:
            yield overlay.finding(one, f"minReplicas {_least(one)} is above maxReplicas {spec['maxReplicas']}")
        target = overlay.find(spec["scaleTargetRef"]["kind"], spec["scaleTargetRef"]["name"])
        if target is None:
            yield overlay.finding(one, f"there is no {spec['scaleTargetRef']['name']} to scale")
            continue
        if "replicas" in target["spec"]:
            yield overlay.finding(target, "has replicas beside an autoscaler: every apply would set them back")
        for metric in spec.get("metrics", []):
            name = metric.get("resource", {}).get("name")
            for container in target["spec"]["template"]["spec"]["containers"]:
                if name and name not in container.get("resources", {}).get("requests", {}):
                    yield overlay.finding(target, f"{container['name']} requests no {name}, of which its scaler counts")


def _policies(overlay: Overlay) -> Iterator[str]:
    pods = overlay.pods()
    for one in overlay.of("NetworkPolicy"):
        spec = one["spec"]
        chosen = [pod for pod in pods if matches(spec["podSelector"], pod.labels)]
        if not chosen:
            yield overlay.finding(one, f"its podSelector matches no pod: {spec['podSelector']}")
        for rule in (*spec.get("ingress", []), *spec.get("egress", [])):
            for peer in (*rule.get("from", []), *rule.get("to", [])):
                own = "podSelector" in peer and "namespaceSelector" not in peer
                if own and not any(matches(peer["podSelector"], pod.labels) for pod in pods):
                    yield overlay.finding(one, f"a rule is for pods that are not there: {peer['podSelector']}")
        known = {port for pod in chosen for port in ports(pod).values()} | ELASTICSEARCH_PORTS
        for number in (port["port"] for rule in spec.get("ingress", []) for port in rule.get("ports", [])):
            if number not in known:
                yield overlay.finding(one, f"lets in at port {number}, where none of its pods listens")


def _monitors(overlay: Overlay) -> Iterator[str]:
    for one in overlay.of("ServiceMonitor"):
        chosen = [each for each in overlay.of("Service") if matches(one["spec"]["selector"], labels(each))]
        if not chosen:
            yield overlay.finding(one, f"its selector matches no Service: {one['spec']['selector']}")
        named = {port["name"] for each in chosen for port in each["spec"]["ports"]}
        behind = [pod for pod in overlay.pods() for each in chosen if _behind(each, pod)]
        for endpoint in one["spec"]["endpoints"]:
            path = endpoint.get("path", "/metrics")
            for pod in behind:
                if path not in scraped(pod):
                    yield overlay.finding(one, f"{pod.owner} has no metrics at {path}")
            if chosen and endpoint.get("port") not in named:
                yield overlay.finding(one, f"there is no port {endpoint.get('port')}, only {', '.join(sorted(named))}")


def _ingresses(overlay: Overlay) -> Iterator[str]:
    for one in overlay.of("Ingress"):
        secured = {host for each in one["spec"].get("tls", []) for host in each.get("hosts", [])}
        for rule in one["spec"]["rules"]:
            if rule.get("host") not in secured:
                yield overlay.finding(one, f"{rule.get('host')} is answered without TLS")
            for path in rule["http"]["paths"]:
                backend = path["backend"]["service"]
                service = overlay.find("Service", backend["name"])
                if service is None or not _has(service, backend["port"]):
                    yield overlay.finding(one, f"there is no Service {backend['name']} with port {backend['port']}")


def _has(service: Object, port: dict[str, Any]) -> bool:
    return any(port.get("name", one["name"]) == one["name"] and port.get("number", one["port"]) == one["port"]
               for one in service["spec"]["ports"])  # fmt: skip


def _versions(overlay: Overlay) -> Iterator[str]:
    for one in overlay.of("Elasticsearch"):
        if one["spec"]["version"] != VERSION:
            yield overlay.finding(one, f"is {one['spec']['version']}, and the tests run against {VERSION}")


def _addresses(overlay: Overlay) -> Iterator[str]:
    """What the settings call by name is a Service here, and the one for gRPC stands for all of its pods."""
    for one in overlay.of("ConfigMap"):
        address = one.get("data", {}).get("SERVING", "")
        if not address:
            continue
        host, _, port = address.removeprefix("dns:///").rpartition(":")
        service = overlay.find("Service", host)
        if service is None or not _has(service, {"number": int(port)}):
            yield overlay.finding(one, f"SERVING is {address}, and there is no such Service and port")
        elif service["spec"].get("clusterIP") != "None" or not address.startswith("dns:///"):
            yield overlay.finding(one, f"SERVING is {address}: all requests of a client would go to one pod")
        host, _, port = one["data"].get("INDEX", "").partition("://")[2].partition("/")[0].partition(":")
        cluster = host.removesuffix("-es-http")
        if "." not in host and not (overlay.find("Elasticsearch", cluster) and port == "9200"):
            yield overlay.finding(one, f"INDEX is {one['data'].get('INDEX')}, and no Elasticsearch is called so here")
