"""The images: by hadolint and checkov, and against the code and the lock that they are made of."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from infra.checks.check import Check
from infra.checks.tools import CHECKOV, python_tool
from infra.images.dockerfile import Dockerfile, dockerfiles
from infra.images.locks import EXTRAS, blocks
from infra.local import processes
from infra.local.processes import Unavailable

PINNED = re.compile(r"\S+:\S*\d\S*")
REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(\[[\w,-]+\])?==")
HEAVY = ("tensorflow", "keras", "torch")
NOT_HEAVY = ("pipeline", "search")  # images that must stay small and start soon
# What must be there to import with an image's packages alone.
IMPORTS = {
    "pipeline": "pipelines.encode pipelines.pipeline pipelines.reindex.__main__ index.__main__",
    "search": "search.__main__ search.app search.labels search.keys index.elastic.store index.lance.store",
}
SECRET = re.compile(r"(PASSWORD|SECRET|TOKEN|API_?KEY)\w*=(?!/)\S+|-----BEGIN|://[^/\s:@]+:[^/\s@]+@", re.IGNORECASE)
SECONDS = 900


def relative(root: Path, file: Dockerfile) -> str:
    return file.path.relative_to(root).as_posix()


def hadolint(root: Path) -> list[str]:
    files = [str(file.path) for file in dockerfiles(root).values()]
    run = subprocess.run([str(python_tool("hadolint")), "--format", "json", *files], capture_output=True, text=True)
    if run.stderr.strip():
        return [run.stderr.strip()]
    return [
        f"{Path(one['file']).relative_to(root)}:{one['line']}: {one['code']} {one['message']}"
        for one in json.loads(run.stdout)
    ]


def rules(root: Path) -> list[str]:
    """What neither validator knows: all images hold to the same."""
    wrong: list[str] = []
    for file in dockerfiles(root).values():
        told = [
            *(f"base image {base} is not pinned to a version" for base in file.bases if not PINNED.fullmatch(base)),
            *([] if file.last("HEALTHCHECK") else ["there is no HEALTHCHECK"]),
            *_user(file),
            *(f"{text.split()[0]!r} has a secret in it" for _, text in file.instructions if SECRET.search(text)),
            *_copied(root, file),
        ]
        wrong += [f"{relative(root, file)}: {line}" for line in told]
    return wrong


def _user(file: Dockerfile) -> list[str]:
    match = re.fullmatch(r"(\d+):(\d+)", file.user)
    if match is None:
        return [f"USER is {file.user or 'not set'}: give user and group by number"]
    return [] if int(match[1]) and int(match[2]) else [f"USER is {file.user}, which is root"]


def _copied(root: Path, file: Dockerfile) -> list[str]:
    """What is copied is there, and not shut out by .dockerignore."""
    context = root / "serving" if file.path.parent.name == "serving" else root
    ignore = root / ".dockerignore"
    opened = {line[1:] for line in ignore.read_text().splitlines() if line.startswith("!")} if context == root else None
    wrong = []
    for text in (text for text in file.all("COPY") if not text.startswith("--from=")):
        for source in text.split()[:-1]:
            if not (context / source).exists():
                wrong.append(f"copies {source}, which is not there")
            elif opened is not None and not any(f"{source}/".startswith(f"{one}/") for one in opened):
                wrong.append(f"copies {source}, which .dockerignore keeps out")
    return wrong


def ports(root: Path) -> list[str]:
    """EXPOSE says what the commands listen on unless told otherwise, and HEALTHCHECK asks there."""
    from search.__main__ import _parser

    files = dockerfiles(root)
    serving = dict(word.removeprefix("--").split("=", 1) for word in files["pause-serving"].entrypoint[1:])
    wanted = {
        "pause-serving": [int(serving["port"]), int(serving["rest_api_port"])],
        "pause-search": [_parser().parse_args([]).port],
    }
    wrong = []
    for name, numbers in wanted.items():
        file = files[name]
        if file.ports != numbers:
            wrong.append(f"{relative(root, file)}: exposes {file.ports}, and its command listens on {numbers}")
        asked = [int(port) for port in re.findall(r"127\.0\.0\.1[:/](\d+)", file.last("HEALTHCHECK"))]
        if not asked or not set(asked) <= set(numbers):
            wrong.append(f"{relative(root, file)}: its health is asked at {asked}, and it listens on {numbers}")
    return wrong


def locks(root: Path) -> list[str]:
    """Each image's lock is a part of requirements.lock, with all that setup.py wants for it."""
    whole = blocks((root / "requirements.lock").read_text())
    wanted = _declared(root)
    wrong = []
    for image, extras in EXTRAS.items():
        path = root / "infra" / "images" / f"{image}.lock"
        text = path.read_text()
        held = blocks(text)
        names = {_normal(line) for line in held}
        strange = [line for line, block in held.items() if whole.get(line) != block]
        asked = {_normal(line) for group in ("", *extras) for line in wanted[group]}
        heavy = [name for name in HEAVY if name in names and image in NOT_HEAVY]
        told = [
            *(f"{line} is not so in requirements.lock" for line in strange),
            *(f"{name}, which setup.py wants, is missing" for name in sorted(asked - names)),
            *(f"{name} must not be in this image" for name in heavy),
            *(["names an index of packages"] if "--index-url" in text or "://" in text else []),
        ]
        wrong += [f"{path.relative_to(root)}: {line}; `python -m infra.images lock` makes it anew" for line in told]
    return wrong


def _normal(requirement: str) -> str:
    match = REQUIREMENT.match(requirement)
    return re.sub(r"[-_.]+", "-", match["name"] if match else requirement).lower()


def _declared(root: Path) -> dict[str, list[str]]:
    """Extra: its requirements; "" is what every worker needs."""
    import ast

    tree = ast.parse((root / "setup.py").read_text())
    lists = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    return {"": lists["WORKER"], "serve": lists["SERVE"], "train": lists["TRAIN"]}


def imports(root: Path) -> list[str]:
    """With the packages of its lock and no other, in an environment made for it, what an image runs can be imported."""
    wrong = []
    for image, modules in IMPORTS.items():
        with tempfile.TemporaryDirectory(dir=processes.ROOT / "build") as folder:
            python = str(Path(folder) / "bin" / "python")
            uv = [sys.executable, "-m", "uv"]
            _run([*uv, "venv", "--quiet", "--python", sys.executable, folder], root)
            lock = root / "infra" / "images" / f"{image}.lock"
            _run([*uv, "pip", "install", "--quiet", "--no-deps", "--python", python, "--requirement", str(lock)], root)
            said = [_said([*uv, "pip", "check", "--quiet", "--python", python], root),
                    _said([python, "-c", f"import {', '.join(modules.split())}"], root)]  # fmt: skip
            wrong += [f"infra/images/{image}.lock: {line}" for line in said if line]
    return wrong


def _said(command: list[str], root: Path) -> str:
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=SECONDS)
    return " ".join(run.stderr.split())[-400:] if run.returncode else ""


def _run(command: list[str], root: Path) -> None:
    said = _said(command, root)
    if said:
        raise Unavailable(f"`{' '.join(command[:5])} ...` failed: {said}")


def checkov(root: Path) -> list[str]:
    command = [*CHECKOV, "--framework", "dockerfile", "--compact", "--quiet", "--output", "json",
               *(word for file in dockerfiles(root).values() for word in ("--file", str(file.path)))]  # fmt: skip
    run = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    try:
        answer = json.loads(run.stdout)
    except ValueError:
        raise Unavailable(f"checkov said nothing that can be read: {' '.join(run.stderr.split())[-300:]}") from None
    found = answer if isinstance(answer, list) else [answer]
    return [
        f"{one['file_path'].lstrip('/')}: {one['check_id']} {one['check_name']}"
        for part in found
        for one in part.get("results", {}).get("failed_checks", [])
    ]


CHECKS = [
    Check("hadolint", hadolint),
    Check("image rules", rules),
    Check("image ports", ports),
    Check("image locks", locks),
    Check("image imports", imports, slow=True),
    Check("checkov dockerfiles", checkov, slow=True),
]
