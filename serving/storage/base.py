"""Where the versions of a model live: a base path with numbered folders, on this machine or in an object store.

Servers look at numbers only: what is being written begins with a dot, what was withdrawn ends in a word.
"""

from __future__ import annotations

import json
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

from common.errors import InputError
from model.contract import Contract
from model.errors import ExportError
from model.export import EXTRA, FACTS

SAVED_MODEL, FACTS_FILE = "saved_model.pb", f"{EXTRA}/{FACTS}"
# What publishing writes beside the numbered folders.
PARTIAL, CLAIM = ".partial-", ".claim-"
WITHDRAWN = ".withdrawn"  # after the number of a version that was rolled back
STALE_AFTER = 24 * 3600.0  # seconds; what a killed publisher left unfinished is then removed
CHUNK = 1 << 20  # bytes
Report = Callable[[int], object]  # told the bytes just copied


class StorageError(InputError):
    """A base path that cannot be read or written."""


class File(NamedTuple):
    """Enough to see that a file changed without reading it."""

    size: int
    changed: float  # seconds since 1970


def incomplete(directory: Path) -> str | None:
    """What the version in a directory lacks to be served, in words, or None."""
    return _lack(stat_files(directory), (directory / FACTS_FILE).read_bytes)


def contents(directory: Path) -> dict[str, int]:
    """The files of a complete version with their sizes."""
    lack = incomplete(directory)
    if lack:
        raise ExportError(f"it is not complete: {lack}")
    listed: dict[str, int] = json.loads((directory / FACTS_FILE).read_bytes())["files"]
    return {**listed, FACTS_FILE: (directory / FACTS_FILE).stat().st_size}


class Base(ABC):
    """A base path; the next number counts withdrawn versions too, so that a number never means two models."""

    def __init__(self, path: str):
        self.path = path

    def versions(self) -> list[int]:
        """The numbered folders there are, ascending; none where the base path does not exist."""
        return sorted(self._numbered())

    def location(self, version: int) -> str:
        return f"{self.path}/{self._folder(version)}"

    def incomplete(self, version: int) -> str | None:
        """As the function of that name, without fetching more than the list of files."""
        return _lack(self.files(version), lambda: self._read(f"{self._folder(version)}/{FACTS_FILE}"))

    def newest(self) -> int | None:
        """Of the complete versions, which are those that are served."""
        return next((version for version in reversed(self.versions()) if not self.incomplete(version)), None)

    def contract(self, version: int) -> Contract:
        """What the model of a complete version promises."""
        facts = json.loads(self._read(f"{self._folder(version)}/{FACTS_FILE}"))
        return Contract.from_json(json.dumps(facts["contract"]))

    def withdraw(self, version: int) -> None:
        """Takes a version out of the sight of servers and keeps it under a name that is no number."""
        self._rename(self._folder(version), f"{version}{WITHDRAWN}")

    def remove(self, version: int) -> None:
        self.discard(self._folder(version))

    def prune(self, keep: int) -> list[str]:
        """Removes what is older than the last `keep` complete versions, and what killed publishers left; names it."""
        if keep < 1:
            raise ValueError(f"keep must be at least 1, got {keep}: the newest version stays")
        oldest = [version for version in self.versions() if not self.incomplete(version)][-keep:][:1]
        gone = []
        for name, changed in self._folders().items():
            number = _number(name.removesuffix(WITHDRAWN))
            stale = name.startswith((PARTIAL, CLAIM)) and changed < time.time() - STALE_AFTER
            if stale or (oldest and number is not None and number < oldest[0]):
                self.discard(name)
                gone.append(name)
        return gone

    def _numbered(self) -> dict[int, str]:
        found = ((_number(name), name) for name in self._folders())
        return {number: name for number, name in found if number is not None}

    def _folder(self, version: int) -> str:
        return self._numbered().get(version, str(version))  # TensorFlow Serving reads 0007 as 7, too

    @abstractmethod
    def files(self, version: int) -> dict[str, File]:
        """The files of a version by their relative names: equal to an earlier answer if and only if nothing changed."""

    @abstractmethod
    def fetch(self, version: int, into: Path) -> Path:
        """A local directory with the version: its own where that is local, else `into`, filled anew."""

    @abstractmethod
    def add(self, source: Path, copied: Report | None = None) -> int:
        """Copies a version directory and gives it the next number; it appears complete or not at all."""

    @abstractmethod
    def _folders(self) -> dict[str, float]:
        """Whatever folders the base path holds, with the time of their last change."""

    @abstractmethod
    def _read(self, name: str) -> bytes: ...

    @abstractmethod
    def _rename(self, folder: str, to: str) -> None: ...

    @abstractmethod
    def discard(self, folder: str) -> None:
        """Removes a folder such that no server takes the rest of it for a version."""


def pour(reader: IO[bytes], writer: IO[bytes], copied: Report | None = None) -> None:
    while chunk := reader.read(CHUNK):
        writer.write(chunk)
        if copied:
            copied(len(chunk))


def compare(wanted: Mapping[str, int], found: Mapping[str, File]) -> None:
    """Raises where a copy differs from what was to be copied: the disk was full, or the source changed meanwhile."""
    for name, size in wanted.items():
        have = found[name].size if name in found else 0
        if have != size:
            raise StorageError(f"the copy of {name} has {have:,} of {size:,} bytes; nothing was published")


def _number(name: str) -> int | None:
    """The version a folder's name stands for; what does not fit the 64 bits of a request is none."""
    number = int(name) if name.isascii() and name.isdigit() and len(name) < 20 else None
    return number if number is not None and number < 2**63 else None


def stat_files(directory: Path) -> dict[str, File]:
    found = {}
    for folder, _, names in os.walk(directory):  # passes over folders that are removed meanwhile, as rglob does not
        for path in (Path(folder, name) for name in names):
            with suppress(FileNotFoundError):  # renamed or removed since it was listed
                stat = path.stat()
                found[path.relative_to(directory).as_posix()] = File(stat.st_size, stat.st_mtime)
    return found


def _lack(files: Mapping[str, File], read_facts: Callable[[], bytes]) -> str | None:
    if FACTS_FILE not in files:
        return f"{FACTS_FILE} is missing: still being copied, or not written by model.export?"
    try:
        facts = json.loads(read_facts())
    except FileNotFoundError:
        return f"{FACTS_FILE} is missing: removed just now?"
    except ValueError:
        return f"{FACTS_FILE} is cut short: still being copied?"
    listed = facts.get("files") if isinstance(facts, dict) else None
    if not isinstance(listed, dict) or not listed or not all(isinstance(size, int) for size in listed.values()):
        return f"{FACTS_FILE} does not list the version's files: export the model again"
    for name, size in listed.items():
        if name not in files:
            return f"{name} is missing: still being copied?"
        if files[name].size < size:
            return f"{name} has {files[name].size:,} of {size:,} bytes: still being copied?"
        if files[name].size > size:
            return f"{name} has {files[name].size:,} bytes where {size:,} were exported: changed since?"
    return None
