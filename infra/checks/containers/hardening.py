"""What every service of compose.yaml holds to: no root, no secret in clear, bounds, and only the ways in it needs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from infra.checks.containers.compose_file import Compose, Service

ROOT = re.compile(r"(0+|root)(:.*)?|")
PINNED = re.compile(r"[^:]+:[^:]*\d+\.\d+[^:]*(@sha256:.*)?")
SECRET_NAME = re.compile(r"PASSWORD|PASSWD|SECRET|TOKEN|API_?KEY|PRIVATE", re.IGNORECASE)
CREDENTIALS = re.compile(r"://[^/\s:@]+:[^/\s@]+@|-----BEGIN|--(password|token|api[-_]?key)[= ]", re.IGNORECASE)
WRITES_ITS_ROOT = ("elasticsearch",)  # it makes its keystore beside its settings
# Who may be on the networks of what holds and encodes the companies; Prometheus sees figures by a network of its own.
MEMBERS = {
    "index": {"elasticsearch", "users", "encode", "encode-files", "search"},
    "serving": {"serving", "encode", "encode-files", "search"},
    "metrics": {"serving", "encode", "search", "prometheus"},
    "front": {"search", "proxy"},
}
OPEN = {"outside", "watching", "messages"}  # lead to the ports of this machine


def findings(compose: Compose) -> list[str]:
    found = [f"{name}: {what}" for name, service in compose.services.items() for what in _service(service)]
    for network, members in MEMBERS.items():
        present = {name for name, service in compose.services.items() if network in service.networks}
        found += [f"{name}: must not be on the network {network}" for name in sorted(present - members)]
        if not (compose.given["networks"].get(network) or {}).get("internal"):
            found.append(f"network {network}: must be internal")
    found += [f"network {name}: nobody knows it" for name in compose.given["networks"] if name not in {*MEMBERS, *OPEN}]
    return found


def _service(service: Service) -> Iterator[str]:
    given = service.given
    if ROOT.fullmatch(service.user):
        yield f"runs as {service.user or 'whoever its image says'}: give a user other than root, by number"
    elif not service.user.partition(":")[0].isdecimal():
        yield f"runs as {service.user}: give the user by number"
    if given.get("privileged") or given.get("cap_add") or given.get("network_mode", "none") != "none":
        yield "must be neither privileged, nor with added capabilities, nor on the machine's network"
    if given.get("cap_drop") != ["ALL"] or "no-new-privileges:true" not in given.get("security_opt", []):
        yield "must drop all capabilities and take no new privileges"
    if not given.get("read_only") and service.name not in WRITES_ITS_ROOT:
        yield "must have a read-only root"
    limits = given.get("deploy", {}).get("resources", {}).get("limits", {})
    if not {"cpus", "memory", "pids"} <= limits.keys():
        yield "has no bound on CPUs, memory or processes"
    if not service.ends and not service.has_health:
        yield "has no health check"
    if service.image is None and not PINNED.fullmatch(str(given.get("image", ""))):
        yield f"image {given.get('image')} is not pinned to a version"
    for address, port, _ in service.published:
        if address not in ("127.0.0.1", "::1"):
            yield f"publishes {port} on {address or 'every address'}, and not on this machine alone"
    yield from _secrets(service)


def _secrets(service: Service) -> Iterator[str]:
    for name, value in service.environment.items():
        if SECRET_NAME.search(name) and not name.endswith("_FILE") and value not in ("true", "false"):
            yield f"{name} is in clear: give it as a file"
        elif name.endswith("_FILE") and not value.startswith("/run/secrets/"):
            yield f"{name} must name a file below /run/secrets"
    for text in (*service.environment.values(), *service.command):
        if CREDENTIALS.search(text):
            yield f"{text.partition('=')[0][:40]!r} has a secret in it"
