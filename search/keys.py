"""API keys: a file of their hashes, and who may do what with them. `python -m search.keys` makes and removes keys."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import secrets
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from model.command import Parser, answer
from model.errors import InputError

READ, FEEDBACK = "read", "feedback"
SCOPES = (READ, FEEDBACK)
_LINE = re.compile(r"(?P<name>[\w.@-]{1,64}) (?P<scopes>[a-z,]+) (?P<digest>[0-9a-f]{64})", re.ASCII)

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Caller:
    """Who asks: a key's name, or an address that stays unsaid."""

    name: str
    scopes: frozenset[str] = frozenset(SCOPES)


class Keys:
    """Follows its file: a line taken out is a key withdrawn, without a restart."""

    def __init__(self, path: Path):
        self._path, self._lock = path, threading.Lock()
        self._callers, self._stamp = read(path), _stamp(path)

    def caller(self, key: str) -> Caller | None:
        self._follow()
        return self._callers.get(digest(key))

    def _follow(self) -> None:
        with self._lock:
            stamp = _stamp(self._path)
            if stamp == self._stamp:
                return
            self._stamp = stamp
            try:
                self._callers = read(self._path)
            except InputError as error:
                log.error("the keys stay as they were: %s", error)


def digest(key: str) -> str:
    """Keys are 256 random bits: nothing slower than one hash keeps them from being guessed."""
    return hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()


def read(path: Path) -> dict[str, Caller]:
    """Callers by the hash of their key; empty lines and those that begin with # say nothing."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"keys cannot be read from {path}: {error}") from error
    callers = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line.strip())
        scopes = frozenset(match["scopes"].split(",")) if match else frozenset()
        if match is None or not scopes <= set(SCOPES):
            raise InputError(
                f"{path}, line {number}: not `name scopes hash`, as `python -m search.keys add --file {path}` writes"
            )
        callers[match["digest"]] = Caller(match["name"], scopes)
    return callers


def add(path: Path, name: str, scopes: str) -> str:
    """The new key, which is nowhere else from then on."""
    key = secrets.token_urlsafe(32)
    line = f"{name} {scopes} {digest(key)}"
    if not _LINE.fullmatch(line) or not set(scopes.split(",")) <= set(SCOPES):
        raise InputError(
            f"a key takes a name of letters, digits and . _ @ -, and scopes {','.join(SCOPES)}; got {line[:80]!r}"
        )
    if path.exists() and any(caller.name == name for caller in read(path).values()):
        raise InputError(f"{path} has a key named {name} already; remove it first")
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    _replace(path, f"{before.rstrip()}\n{line}\n".lstrip())
    return key


def remove(path: Path, name: str) -> None:
    if name not in {caller.name for caller in read(path).values()}:
        raise InputError(f"{path} has no key named {name!r}")
    lines = path.read_text(encoding="utf-8").splitlines()
    _replace(path, "".join(f"{line}\n" for line in lines if line.split(" ")[0] != name))


def _replace(path: Path, content: str) -> None:
    """In one step, and for its owner's eyes: hashes tell nothing of keys, but names tell who has one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(content)
        temporary.replace(path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def main(argv: list[str] | None = None) -> int:
    parser = Parser(
        prog="python -m search.keys",
        description="Make or remove the API keys of `python -m search --keys FILE`; a running server follows the file.",
        epilog="examples:\n"
        "  python -m search.keys add --file keys --name ann --scopes read,feedback\n"
        "  python -m search.keys remove --file keys --name ann",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="add|remove")
    made = commands.add_parser("add", help="print a new key, and keep its hash")
    made.add_argument("--scopes", default=",".join(SCOPES), help="what it is good for: %(default)s")
    for command in (made, commands.add_parser("remove", help="withdraw a key")):
        command.add_argument("--file", type=Path, required=True)
        command.add_argument("--name", required=True, help="who has it; kept with the answers given")
    arguments = parser.parse_args(argv)

    def work() -> None:
        if arguments.command == "add":
            print(add(arguments.file, arguments.name, arguments.scopes))
        else:
            remove(arguments.file, arguments.name)

    return answer(work)


if __name__ == "__main__":
    sys.exit(main())
