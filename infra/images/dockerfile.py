"""A Dockerfile as its instructions: enough of the language for what stands in ours."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path("infra/images")
SERVING = Path("serving/Dockerfile")
VARIABLE = re.compile(r"\$\{(\w+)\}|\$(\w+)")


@dataclass(frozen=True)
class Dockerfile:
    """Instructions in their order, continued lines joined, comments gone."""

    path: Path
    instructions: tuple[tuple[str, str], ...]
    arguments: dict[str, str] = field(default_factory=dict)  # ARG: its default

    @classmethod
    def read(cls, path: Path) -> Dockerfile:
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.lstrip().startswith("#")]
        joined = re.sub(r"\s*\\\n\s*", " ", "\n".join(lines))
        found = tuple(
            (word.upper(), rest.strip())
            for word, _, rest in (line.partition(" ") for line in joined.splitlines())
            if word
        )
        arguments = dict(rest.partition("=")[::2] for word, rest in found if word == "ARG")
        return cls(path, found, arguments)

    def resolved(self, text: str) -> str:
        """With the defaults of its arguments."""
        return VARIABLE.sub(lambda match: self.arguments.get(match[1] or match[2], match[0]), text)

    def all(self, word: str) -> list[str]:
        return [self.resolved(rest) for name, rest in self.instructions if name == word]

    def last(self, word: str) -> str:
        """That of the image which is built; "" where there is none."""
        return (self.all(word) or [""])[-1]

    @property
    def bases(self) -> list[str]:
        """Images that come from elsewhere: what FROM names, but for its own stages."""
        stages: set[str] = set()
        found = []
        for origin, _, stage in (text.replace(" as ", " AS ").partition(" AS ") for text in self.all("FROM")):
            if origin not in stages and origin != "scratch":
                found.append(origin)
            stages.add(stage)
        return list(dict.fromkeys(found))

    @property
    def user(self) -> str:
        return self.last("USER")

    @property
    def ports(self) -> list[int]:
        return [int(port) for port in self.last("EXPOSE").split()]

    @property
    def entrypoint(self) -> list[str]:
        found = self.last("ENTRYPOINT")
        return [str(word) for word in json.loads(found)] if found else []

    @property
    def environment(self) -> dict[str, str]:
        pairs = (pair.partition("=") for text in self.all("ENV") for pair in text.split())
        return {name: value for name, _, value in pairs}


def image_name(path: Path) -> str:
    """What it is tagged as: pause-pipeline for pipeline.Dockerfile, pause-serving for serving/Dockerfile."""
    return f"pause-{path.stem if path.suffix == '.Dockerfile' else path.parent.name}"


def dockerfiles(root: Path) -> dict[str, Dockerfile]:
    """Of all images, by their names."""
    paths = [root / SERVING, *sorted((root / FOLDER).glob("*.Dockerfile"))]
    return {image_name(path): Dockerfile.read(path) for path in paths}
