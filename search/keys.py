"""API keys: a file of their hashes, and who may do what with them. `python -m search.keys` makes and removes keys."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import secrets
import stat
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile

from common.command import Parser, exit_code
from common.errors import InputError

READ, FEEDBACK = "read", "feedback"
SCOPES = (READ, FEEDBACK)
MOST, MOST_BYTES = 10_000, 2_000_000  # keys in a file, and bytes: a line has 150 at most
RETRY_SECONDS = 1.0
_LINE = re.compile(r"(?P<name>[\w.@-]{1,64}) (?P<scopes>[a-z,]+) (?P<digest>[0-9a-f]{64})", re.ASCII)

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Caller:
    """Who asks: a key's name, or an address that stays unsaid."""

    name: str
    scopes: frozenset[str] = frozenset(SCOPES)


class KeysLocked(InputError):
    """Nobody is let in: there is no telling which keys are good. The log says why; a caller is not told of files."""


class Keys:
    """Follows its file: a line taken out is a key withdrawn, without a restart. While the file is away, broken or
    empty, no key is good: whoever took it away may have meant just that."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic):
        self._path, self._clock, self._lock = path, clock, threading.Lock()
        self._callers: dict[str, Caller] = {}
        self._fault: str | None = None
        self._stamp: tuple[int, ...] | None = ()  # of no file
        self._again = 0.0
        self._follow()

    def caller(self, key: str) -> Caller | None:
        with self._lock:
            self._follow()
            if self._fault is not None:
                raise KeysLocked("the file of API keys is away, empty or broken")
            return self._callers.get(digest(key))

    def _follow(self) -> None:
        stamp = _stamp(self._path)
        # What could not be read is tried again although it looks the same: not every fault is in the file.
        if stamp == self._stamp and (self._fault is None or self._clock() < self._again):
            return
        self._stamp, self._again = stamp, self._clock() + RETRY_SECONDS
        before = self._fault
        try:
            self._callers = read(self._path)
            self._fault = None if self._callers else f"there is no key in {self._path}"
        except InputError as error:
            self._callers, self._fault = {}, str(error)
        if self._fault != before:
            log.error("locked: %s", self._fault) if self._fault else log.warning("%s is read again", self._path)


def digest(key: str) -> str:
    """Keys are 256 random bits: nothing slower than one hash keeps them from being guessed."""
    return hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()


def read(path: Path) -> dict[str, Caller]:
    """Callers by the hash of their key; empty lines and those that begin with # say nothing."""
    callers: dict[str, Caller] = {}
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line.strip())
        scopes = frozenset(match["scopes"].split(",")) if match else frozenset()
        if match is None or not scopes <= set(SCOPES):
            raise InputError(
                f"{path}, line {number}: not `name scopes hash`, as `python -m search.keys add --file {path}` writes"
            )
        callers[match["digest"]] = Caller(match["name"], scopes)
        if len(callers) > MOST:
            raise InputError(f"{path} has more than {MOST} keys")
    return callers


def read_text(path: Path) -> str:
    try:
        # Not to wait for whoever writes into a pipe.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise InputError(f"keys cannot be read from {path}: it is no file")
            content = file.read(MOST_BYTES + 1)
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise InputError(f"others may write to {path}, and so let themselves in; `chmod 600 {path}` keeps them out")
        if len(content) > MOST_BYTES:
            raise InputError(f"{path} has more than {MOST_BYTES} bytes, which is more than {MOST} keys take")
        return content.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"keys cannot be read from {path}: {error}") from error


def readable_by_others(path: Path) -> bool:
    return bool(path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH))


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
    before = read_text(path) if path.exists() else ""
    after = f"{before.rstrip()}\n{line}\n".lstrip()
    if len(after.encode()) > MOST_BYTES or after.count("\n") > MOST:
        raise InputError(f"{path} is full: it has room for {MOST} keys; remove some first")
    _replace(path, after)
    return key


def remove(path: Path, name: str) -> None:
    if name not in {caller.name for caller in read(path).values()}:
        raise InputError(f"{path} has no key named {name!r}")
    lines = read_text(path).splitlines()
    _replace(path, "".join(f"{line}\n" for line in lines if line.split(" ")[0] != name))


def _replace(path: Path, content: str) -> None:
    """In one step, and for its owner's eyes: hashes tell nothing of keys, but names tell who has one."""
    temporary = None
    try:
        with NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}.", delete=False, encoding="utf-8") as file:
            temporary = Path(file.name)  # made for its owner alone
            file.write(content)
        temporary.replace(path)
    except OSError as error:
        if temporary:
            temporary.unlink(missing_ok=True)
        raise InputError(f"{path} cannot be written: {error.strerror}") from error


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


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

    return exit_code(work)


if __name__ == "__main__":
    sys.exit(main())
