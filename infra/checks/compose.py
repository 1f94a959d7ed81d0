"""compose.yaml: by the format's own schema, by `docker compose config`, and against the code and files it names."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path

from infra.checks.check import Check
from infra.checks.containers import commands, docker_compose, hardening, proxy, roles
from infra.checks.containers.compose_file import FILE, SECRETS, Compose, Service
from infra.checks.tools import python_tool

ADDRESS = re.compile(r"(?<![\w.$-])(?P<host>[a-z][a-z0-9-]*):(?P<port>\d{2,5})(?![\w.-])")
HERE = ("localhost",)
# Settings of services that name others: where, and who reads it.
CONFIGS = {"proxy": "compose/nginx.conf", "grafana": "monitoring/grafana/datasources/prometheus.yaml",
           "prometheus": "monitoring/prometheus.yaml"}  # fmt: skip
THIRD_PARTIES = {"prometheus": [9090], "grafana": [3000], "elasticsearch": [9200]}
ANY = ("PUBSUB_EMULATOR_HOST",)  # read by Google's clients


def schema(root: Path) -> list[str]:
    """Unknown fields, and values of the wrong kind."""
    program = python_tool("check-jsonschema")
    command = [str(program), "--builtin-schema", "vendor.compose-spec", "--output-format", "text", str(root / FILE)]
    run = subprocess.run(command, capture_output=True, text=True)
    lines = [line.strip() for line in (run.stdout + run.stderr).splitlines() if "::$" in line]
    return [f"{FILE}: {line.partition('::')[2]}" for line in lines] or ([run.stdout] if run.returncode else [])


def offered(compose: Compose) -> dict[str, list[int]]:
    """Service: the ports it listens on, by its own Dockerfile or settings."""
    found = {name: service.image.ports for name, service in compose.services.items() if service.image}
    found |= {name: ports for name, ports in THIRD_PARTIES.items() if name in compose.services}
    nginx = (compose.path.parent / CONFIGS["proxy"]).read_text()
    found["proxy"] = [int(port) for port in re.findall(r"listen (\d+)", nginx)]
    words = " ".join(compose.services["pubsub"].command) if "pubsub" in compose.services else ""
    found["pubsub"] = [int(port) for port in re.findall(r"--host-port=\S+:(\d+)", words)]
    return found


def links(root: Path) -> list[str]:
    """Services, networks, volumes and secrets that are named are there; addresses have the right port, and a network
    leads to them."""
    compose = Compose.read(root)
    wrong: list[str] = []
    ports = offered(compose)
    for name, service in compose.services.items():
        wrong += [f"{name}: {what}" for what in (*_undefined(compose, service), *_conditions(compose, service))]
        texts = [*service.command, *service.environment.values(), _config(compose, name)]
        for found in (match for text in texts for match in ADDRESS.finditer(text)):
            wrong += [
                f"{name}: {what}" for what in _address(compose, service, found["host"], int(found["port"]), ports)
            ]
        grpc = {f"--serving={host}:{known[0]}" for host, known in ports.items() if known}  # the first is gRPC's
        strange = [word for word in service.command if word.startswith("--serving=") and word not in grpc]
        wrong += [f"{name}: {word} is not where gRPC is served" for word in strange]
        for _, _, inside in service.published:
            if inside not in ports.get(name, []):
                wrong.append(
                    f"{name}: publishes port {inside}, and listens on {ports.get(name) or 'none that is known'}"
                )
    return [f"{FILE}: {line}" for line in dict.fromkeys(wrong)]


def _config(compose: Compose, name: str) -> str:
    path = compose.path.parent / CONFIGS.get(name, "none")
    lines = path.read_text().splitlines() if path.is_file() else []
    return "\n".join(line.partition("#")[0] for line in lines)


def _undefined(compose: Compose, service: Service) -> list[str]:
    volumes = [mount for mount in service.mounts.values() if compose.outside(mount) is None]
    asked = {"services": list(service.depends_on), "networks": sorted(service.networks - {"default"}),
             "secrets": list(service.secrets), "volumes": volumes}  # fmt: skip
    return [
        f"{name!r} is not among the {kind}"
        for kind, names in asked.items()
        for name in names
        if name not in compose.given.get(kind, {})
    ]


def _conditions(compose: Compose, service: Service) -> list[str]:
    wrong = []
    for name, condition in service.depends_on.items():
        other = compose.services.get(name)
        if other and condition == "service_healthy" and not other.has_health:
            wrong.append(f"waits for {name} to be healthy, which has no health check")
        if other and condition == "service_completed_successfully" and not other.ends:
            wrong.append(f"waits for {name} to end, which is always started again")
    return wrong


def _address(compose: Compose, service: Service, host: str, port: int, ports: dict[str, list[int]]) -> list[str]:
    other = service if host in HERE else compose.services.get(host)
    if other is None:
        return [f"{host}:{port}: {host!r} is not among the services"]
    if not service.networks & other.networks and other is not service:
        return [f"{host}:{port}: no network leads from {service.name} to {host}"]
    known = ports.get(other.name, [])
    return [] if port in known else [f"{host}:{port}: {other.name} listens on {known or 'no port that is known'}"]


def flags(root: Path) -> list[str]:
    """Flags and environment variables of our own commands, by the parsers and the code that will read them."""
    known = commands.variables(root if (root / "pipelines").is_dir() else Path(__file__).parents[2])
    wrong = []
    for name, service in Compose.read(root).services.items():
        fault = commands.fault(service.command)
        wrong += [f"{FILE}: {name}: {fault}"] if fault else []
        strange = [one for one in service.environment if service.image and one not in known and one not in ANY]
        wrong += [f"{FILE}: {name}: nothing in the code reads {one}" for one in strange]
        given = {*service.secrets.values(), *service.mounts}
        for word in (*service.environment.values(), *(word.rpartition("=")[2] for word in service.command)):
            if word.startswith("/run/secrets/") and word not in given:
                wrong.append(f"{FILE}: {name}: {word} is not among its secrets")
    return wrong


def files(root: Path) -> list[str]:
    """Whatever is mounted is there; secrets are those that the script makes."""
    compose = Compose.read(root)
    wrong = []
    for name, service in compose.services.items():
        for mount in service.mounts.values():
            path = compose.outside(mount)
            if path and "build" not in path.parts and not path.exists():
                wrong.append(f"{FILE}: {name}: mounts {mount}, which is not there")
    script = root / "infra" / "compose" / "secrets.sh"
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(["bash", str(script), folder], capture_output=True, text=True, env={**os.environ})
        if run.returncode:
            return [*wrong, f"{script.relative_to(root)}: {' '.join(run.stderr.split())}"]
        made = {path.name for path in Path(folder).iterdir()}
        wrong += [
            f"{script.relative_to(root)}: {path.name} is open to others"
            for path in Path(folder).iterdir()
            if path.stat().st_mode & 0o077
        ]
    for name, secret in compose.given.get("secrets", {}).items():
        path = Path(secret["file"])
        if path.parent != SECRETS or path.name not in made:
            wrong.append(f"{FILE}: secret {name} is {path}, which infra/compose/secrets.sh does not make")
    return wrong


def hardened(root: Path) -> list[str]:
    return [f"{FILE}: {line}" for line in hardening.findings(Compose.read(root))]


CHECKS = [
    Check("compose schema", schema),
    Check("compose links", links),
    Check("compose flags", flags),
    Check("compose files", files),
    Check("compose hardening", hardened),
    Check("docker compose config", docker_compose.config, slow=True),
    Check("compose proxy", proxy.proxy, slow=True),
    Check("compose roles", roles.roles, slow=True),
]
