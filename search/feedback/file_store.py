"""Feedback beside an embedded index: one JSON line a record in a file of mode 0600, bounded in bytes."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from search.feedback.store import (
    BOUND,
    Answer,
    Feedback,
    FeedbackDown,
    FeedbackFull,
    Record,
    allowed,
    from_json,
    to_json,
)

log = logging.getLogger(__name__)


class FileFeedback(Feedback):
    """A line each. Lists that nobody answered make room for new ones, the oldest first; answers are never dropped."""

    def __init__(self, path: Path, bound: int = BOUND):
        self.path, self.where, self.bound = path, str(path), bound
        self._kept_bytes = 0  # of the answers, and lists that were answered, when last looked: they only get more
        _close_to_others(path)

    def add(self, records: Sequence[Record]) -> None:
        content = b"".join(to_json(record) + b"\n" for record in records)
        limit = allowed(records, self.bound)
        try:
            for _ in range(2):
                with self._locked() as file:
                    size = os.fstat(file.fileno()).st_size
                    self._kept_bytes = min(self._kept_bytes, size)  # somebody may have moved the file away
                    if size + len(content) <= limit:
                        durable = any(isinstance(record, Answer) for record in records)
                        _append(file, content, durable)
                        if durable and not size:
                            _sync_folder(self.path.parent)  # of a new file the name must last as well
                        return
                    if size - self._kept_bytes < self.bound // 8:  # too little to be had for reading it all
                        break
                    self.compact(file, size)
        except OSError as error:
            raise FeedbackDown(f"{self.path} cannot be written: {error.strerror}") from error
        raise FeedbackFull(self.where, size, limit)

    def scan(self) -> Iterator[Record]:
        """What a process killed as it wrote left behind is no record."""
        try:
            with self.path.open("rb") as file:
                yield from (from_json(known) for _, known in _lines(file))
        except FileNotFoundError:
            return
        except OSError as error:
            raise FeedbackDown(f"{self.path} cannot be read: {error.strerror}") from error

    @contextmanager
    def _locked(self) -> Iterator[BinaryIO]:
        """The file that has the name now: another process may have put a smaller one in its place meanwhile. It is
        locked itself, and no file beside it as filelock would: whoever moves the store away moves one file."""
        while True:
            with open(os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600), "ab+") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                with suppress(FileNotFoundError):
                    if os.path.samestat(os.fstat(file.fileno()), os.stat(self.path)):
                        yield file
                        return

    def compact(self, file: BinaryIO, size: int) -> None:
        """Without the lists that nobody answered, but for the newest: those may be answered yet."""
        answered = {known["shown"] for _, known in _lines(file) if known.get("kind") == "answer"}
        newest, place, kept = size - self.bound // 16, 0, 0
        temporary = self.path.with_name(f".{self.path.name}.smaller")
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as smaller:
            for line, known in _lines(file):
                place += len(line)
                lasting = known.get("kind") != "shown" or known.get("id") in answered
                kept += len(line) if lasting else 0
                if lasting or place > newest:
                    smaller.write(line)
            smaller.flush()
            os.fsync(smaller.fileno())
            left = smaller.tell()
        temporary.replace(self.path)
        _sync_folder(self.path.parent)  # what is added from now on must not be lost with the name
        self._kept_bytes = kept
        log.info("%s: lists that nobody answered were dropped, %d of %d bytes are left", self.path, left, size)


def _lines(file: BinaryIO) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Each whole line, and what it says."""
    file.seek(0)
    for line in file:
        try:
            known = orjson.loads(line)
        except ValueError:
            try:
                known = json.loads(line)  # takes half a surrogate pair, which a file of old may hold
            except ValueError:
                continue
        yield line if line.endswith(b"\n") else line + b"\n", known


def _append(file: BinaryIO, content: bytes, durable: bool) -> None:
    file.write(b"\n" + content if _torn(file.fileno()) else content)
    file.flush()
    if durable:
        os.fsync(file.fileno())  # people do not answer twice


def _torn(file: int) -> bool:
    size = os.fstat(file).st_size
    return size > 0 and os.pread(file, 1, size - 1) != b"\n"


def _close_to_others(path: Path) -> None:
    """Earlier releases left it open: it tells who looked for what."""
    with suppress(OSError):  # not there yet, or another's
        mode = path.stat().st_mode
        if stat.S_ISREG(mode) and mode & 0o077:
            path.chmod(0o600)


def _sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
