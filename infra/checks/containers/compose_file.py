"""compose.yaml as its services: variables with their defaults, merges done, lists and maps in one form."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from infra.images.dockerfile import Dockerfile, dockerfiles

FILE = Path("infra/compose.yaml")
SECRETS = Path("compose/secrets")  # below the folder of the file
# ${NAME:-default}, ${NAME:?why it must be set}, ${NAME}; $$ is a dollar
VARIABLE = re.compile(r"\$\$|\$\{(?P<name>\w+)(?::(?P<how>[-?])(?P<rest>[^}]*))?\}")
REQUIRED = {"PAUSE_UID": "1000"}  # as compose/secrets.sh writes it, for whoever ran it


@dataclass(frozen=True)
class Service:
    """One of them, and the Dockerfile that it is built by, if it is one of ours."""

    name: str
    given: dict[str, Any]
    image: Dockerfile | None

    @property
    def command(self) -> list[str]:
        """What the container is started with."""
        first = self.given.get("entrypoint") or (self.image.entrypoint if self.image else [])
        return [str(word) for word in (*first, *self.given.get("command", ()))]

    @property
    def environment(self) -> dict[str, str]:
        found = self.given.get("environment", {})
        pairs = found.items() if isinstance(found, dict) else (line.partition("=")[::2] for line in found)
        return {str(name): str(value) for name, value in pairs}

    @property
    def user(self) -> str:
        return str(self.given.get("user") or (self.image.user if self.image else ""))

    @property
    def networks(self) -> set[str]:
        return set() if self.given.get("network_mode") == "none" else set(self.given.get("networks", ["default"]))

    @property
    def depends_on(self) -> dict[str, str]:
        found = self.given.get("depends_on", {})
        return {name: found[name].get("condition", "") if isinstance(found, dict) else "" for name in found}

    @property
    def secrets(self) -> dict[str, str]:
        """Name: path in the container."""
        found = {}
        for secret in self.given.get("secrets", []):
            long = secret if isinstance(secret, dict) else {"source": secret}
            target = str(long.get("target", long["source"]))
            found[str(long["source"])] = target if target.startswith("/") else f"/run/secrets/{target}"
        return found

    @property
    def mounts(self) -> dict[str, str]:
        """Path in the container: file or folder of this machine, or the name of a volume."""
        pairs = (str(volume).removesuffix(":ro").rpartition(":") for volume in self.given.get("volumes", []))
        return {inside: outside for outside, _, inside in pairs}

    @property
    def published(self) -> list[tuple[str, int, int]]:
        """Address, port of this machine, port of the container."""
        found = []
        for port in self.given.get("ports", []):
            outside, _, inside = str(port).rpartition(":")
            address, _, number = outside.rpartition(":")
            found.append((address, int(number), int(inside)))
        return found

    @property
    def ends(self) -> bool:
        """A job, and no server."""
        return str(self.given.get("restart", "no")) not in ("always", "unless-stopped")

    @property
    def has_health(self) -> bool:
        own = self.given.get("healthcheck")
        if own is not None:
            return not own.get("disable", False)
        return self.image is not None and self.image.last("HEALTHCHECK") not in ("", "NONE")


@dataclass(frozen=True)
class Compose:
    """The file, and where it stands."""

    path: Path
    given: dict[str, Any]
    services: dict[str, Service]

    @classmethod
    def read(cls, root: Path) -> Compose:
        path = root / FILE
        given = yaml.safe_load(substituted(path.read_text(encoding="utf-8")))
        images = dockerfiles(root)
        services = {
            name: Service(name, service, images.get(service.get("image", "")))
            for name, service in given["services"].items()
        }
        return cls(path, given, services)

    def outside(self, mount: str) -> Path | None:
        """Where on this machine a mount is; None for a volume."""
        return (self.path.parent / mount).resolve() if mount.startswith(".") else None


def substituted(text: str) -> str:
    """Every variable by its default: what a machine that sets none of them gets."""

    def value(match: re.Match[str]) -> str:
        if match[0] == "$$":
            return "$"
        return (match["rest"] or "") if match["how"] == "-" else REQUIRED.get(match["name"], "")

    return VARIABLE.sub(value, text)
