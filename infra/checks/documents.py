"""Documents against the code: every command, flag, make target, environment variable and file that they name."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from infra.checks.check import Check
from infra.checks.command_lines import beam_flags, command_line, is_command

PATTERNS = ("README.md", "docs/*.md", "*/README.md", "infra/**/*.md")
SKIPPED = {".git", ".venv", "build", "__pycache__", "node_modules", ".mypy_cache", ".ruff_cache", ".pytest_cache"}
CODE = (".py", ".sh")
CODE_NAMES = ("Dockerfile", "Makefile")
PATH_ENDINGS = (".py", ".md", ".toml", ".yaml", ".yml", ".tf", ".json", ".config", ".proto", ".sh", ".txt", ".lock")
# Flags of other people's programs, which documents name without their command.
FOREIGN_FLAGS = {"--init", "--read-only", "--entrypoint", "--build-arg"}  # docker, buildah
# Programs whose own flags and paths are not ours to check.
FOREIGN_COMMANDS = (
    "docker",
    "kubectl",
    "terraform",
    "gcloud",
    "gsutil",
    "curl",
    "openssl",
    "helm",
    "git",
    "rsync",
    "cp",
)

_FENCE = re.compile(r"^ *```.*?$(?P<code>.*?)^ *```", re.DOTALL | re.MULTILINE)
_SPAN = re.compile(r"`(?P<code>[^`\n]+(?:\n[^`\n]+)?)`")
_LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
_COMMAND = re.compile(r"python[\d.]* -m (?P<module>[\w.]+)(?P<rest>[^\n]*)")
_MAKE = re.compile(r"(?:^|[\s`(&;])make (?P<words>[a-z][\w-]*(?: +[A-Z]+=)?)", re.MULTILINE)
_VARIABLE = re.compile(r"\b(?:PAUSE|OTEL)_[A-Z0-9_]*[A-Z0-9]\b(?![*_])")
_FLAG = re.compile(r"--[a-z][\w-]*")
_COMMENT = re.compile(r"(?:^|\s)#.*")
_HEADING = re.compile(r"^#+ +(?P<title>.+?)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Project:
    """The files of a project, as a document can name them."""

    root: Path

    @cached_property
    def files(self) -> list[str]:
        found = []
        for folder, folders, names in os.walk(self.root):
            folders[:] = [name for name in folders if name not in SKIPPED]
            found += [Path(folder, name).relative_to(self.root).as_posix() for name in names]
        return found

    @cached_property
    def endings(self) -> set[str]:
        """Every path from any of its folders on: `transforms/parse.py` and `parse.py` for one file."""
        parts = [path.split("/") for path in self.files]
        files = {"/".join(one[start:]) for one in parts for start in range(len(one))}
        folders = {"/".join(one[start:end]) for one in parts for end in range(1, len(one)) for start in range(end)}
        return files | folders

    @cached_property
    def code(self) -> str:
        """All of it in one text, without tests; of YAML, what Compose puts in from the environment."""
        wanted = [path for path in self.files if path.endswith(CODE) or Path(path).name in CODE_NAMES]
        put_in = [name for path in self.files if path.endswith((".yaml", ".yml"))
                  for name in re.findall(r"\$\{\w+", self.text(path))]  # fmt: skip
        return "\n".join([*(self.text(path) for path in wanted if not path.startswith("tests/")), *put_in])

    @cached_property
    def make(self) -> str:
        return self.text("Makefile") if (self.root / "Makefile").exists() else ""

    def text(self, path: str) -> str:
        return (self.root / path).read_text(encoding="utf-8", errors="replace")

    def documents(self) -> list[str]:
        found = {path.relative_to(self.root).as_posix() for pattern in PATTERNS for path in self.root.glob(pattern)}
        return sorted(path for path in found if not SKIPPED & set(path.split("/")))


def pieces(text: str) -> Iterator[str]:
    """What stands in it as code: lines of blocks, with those that a backslash goes on on, and spans."""
    for block in _FENCE.finditer(text):
        yield from re.sub(r"\\\n\s*", " ", block["code"]).splitlines()
    for span in _SPAN.finditer(_FENCE.sub("", text)):
        yield " ".join(span["code"].split())


def wrong_commands(project: Project, text: str) -> Iterator[str]:
    rooms = {path.split("/")[0] for path in project.files if "/" in path}
    for piece in pieces(text):
        for found in _COMMAND.finditer(piece):
            module = found["module"].rstrip(".")
            if module.split(".")[0] not in rooms:
                continue  # pytest, pip and the like
            if not is_command(project.root, module):
                yield f"`python -m {module}` is no command"
            else:
                yield from (f"`python -m {module}` {said}" for said in wrong_words(module, found["rest"]))


def wrong_words(module: str, rest: str) -> Iterator[str]:
    words, known = _words(rest), command_line(module)
    if known is None:
        return
    chosen: list[str] = []
    if known.subcommands:
        first = next((word for word in words if not word.startswith("-")), "")
        if not first.isupper() and first not in ("", "..."):  # NAME stands for any
            chosen = first.split("|")
            yield from (f"has no subcommand {name!r}" for name in chosen if name not in known.subcommands)
    chosen = [name for name in chosen if name in known.subcommands] or list(known.subcommands)
    accepted = known.accepted(chosen)
    for flag in dict.fromkeys(match[0] for word in words if (match := _FLAG.match(word))):
        if flag not in accepted:
            yield f"has no flag {flag}"


def _words(rest: str) -> list[str]:
    """Up to where another command begins."""
    plain = rest.replace("\\|", "|").replace("[", " ").replace("]", " ").replace("`", " ")
    try:
        words = shlex.split(plain, comments=True)
    except ValueError:  # a quote that ends on another line
        words = plain.split()
    ends = [position for position, word in enumerate(words) if re.fullmatch(r"[|&;<>]+|2>&1|·", word)]
    return words[: ends[0]] if ends else words


def wrong_flags(project: Project, text: str) -> Iterator[str]:
    """Those that stand alone: `--keep_versions 2`. Any of our commands may have them, or Beam."""
    known = _all_flags(project)
    for piece in pieces(text):
        if piece.startswith("--"):
            yield from (f"no command has the flag {flag}" for flag in _FLAG.findall(piece)[:1] if flag not in known)


def _all_flags(project: Project) -> set[str]:
    modules = {found["module"].rstrip(".") for path in project.documents()
               for found in _COMMAND.finditer(project.text(path))}  # fmt: skip
    scripts = [project.text(path) for path in project.files if path.endswith(".sh")]
    known = FOREIGN_FLAGS | beam_flags() | {flag for script in scripts for flag in _FLAG.findall(script)}
    for module in modules:
        line = command_line(module) if is_command(project.root, module) else None
        if line is not None:
            known |= line.accepted(list(line.subcommands))
    return known


def wrong_targets(project: Project, text: str) -> Iterator[str]:
    targets = set(re.findall(r"^([a-z][\w-]*):", project.make, re.MULTILINE))
    for piece in pieces(text):
        for found in _MAKE.finditer(_COMMENT.sub("", piece)):
            target, _, variable = found["words"].partition(" ")
            if target not in targets:
                yield f"`make {target}` is no target of the Makefile"
            variable = variable.strip().rstrip("=")
            if variable and not re.search(
                rf"\$\({variable}\)|\b{variable}\b *[?:]?=|\$\(if \$\({variable}\)", project.make
            ):
                yield f"`make {target} {variable}=` is a variable that the Makefile does not know"


def wrong_variables(project: Project, text: str) -> Iterator[str]:
    for name in dict.fromkeys(_VARIABLE.findall(text)):
        known = re.search(rf"\b{name}\b", project.code)
        if not known and not (name.startswith("OTEL_") and name in _library_variables()):
            yield f"nothing reads the environment variable {name}"


@lru_cache
def _library_variables() -> str:
    """The text in which libraries name the variables that they read; none of one that is not installed."""
    texts = []
    for module in ("opentelemetry.sdk.environment_variables", "elasticsearch._otel"):
        with suppress(ModuleNotFoundError):
            found = importlib.util.find_spec(module)
            texts.append(Path(found.origin).read_text(encoding="utf-8") if found and found.origin else "")
    return "".join(texts)


def wrong_paths(project: Project, document: str, text: str) -> Iterator[str]:
    folder = (project.root / document).parent
    for target in (found["target"] for found in _LINK.finditer(_FENCE.sub("", text))):
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        file = folder / path if path else project.root / document
        if not file.exists():
            yield f"the link to {target} leads nowhere"
        elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text(encoding="utf-8")):
            yield f"the link to {target} leads to no heading"
    top = {path.split("/")[0] for path in project.files if "/" in path}
    for piece in pieces(text):
        for word in [] if piece.startswith(FOREIGN_COMMANDS) else piece.split():
            path = word.strip(".,;:()'\"").rstrip("/")
            if _names_a_file(path, top) and path not in project.endings and not (folder / path).exists():
                yield f"there is no {path}"


def _names_a_file(path: str, top: set[str]) -> bool:
    if not re.fullmatch(r"[\w.-]+(?:/[\w.-]+)*", path) or path.startswith("build/"):
        return False  # a pattern, a placeholder, an address, or what commands make
    first, slash, _ = path.partition("/")
    if slash:
        return (first in top and "." in path.rpartition("/")[2]) or path.endswith((".py", ".md"))
    return path.endswith((".py", ".md"))


def anchors(text: str) -> set[str]:
    """As GitHub makes them of headings."""
    titles = (found["title"] for found in _HEADING.finditer(_FENCE.sub("", text)))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def findings(root: Path) -> list[str]:
    project, found = Project(root), []
    for document in project.documents():
        text = project.text(document)
        said = [
            *wrong_commands(project, text),
            *wrong_flags(project, text),
            *wrong_targets(project, text),
            *wrong_variables(project, text),
            *wrong_paths(project, document, text),
        ]
        found += [f"{document}: {one}" for one in dict.fromkeys(said)]
    return found


CHECKS = [Check("documents name what exists", findings)]
