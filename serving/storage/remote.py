"""A base path in an object store: flat keys, no folders, and no rename of many at once.

A version appears file by file, its list of files last, and vanishes model file first: in between it is incomplete, and
`incomplete` says so. A stock server that looks at that very moment fails to load it and tries again.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from serving.storage.base import (
    CLAIM,
    FACTS_FILE,
    PARTIAL,
    SAVED_MODEL,
    WITHDRAWN,
    Base,
    File,
    Report,
    StorageError,
    compare,
    contents,
)
from serving.storage.object_store import ObjectStore

OTHERS = "*"  # all files but the two that servers look for
APPEARING, VANISHING = (OTHERS, SAVED_MODEL, FACTS_FILE), (SAVED_MODEL, FACTS_FILE, OTHERS)
CLAIMS, PAUSE = 20, 1.0  # how often a number is tried for, and the seconds at most in between
USED = re.compile(rf"(?:{re.escape(CLAIM)}([0-9]+)-.*|([0-9]+)(?:{re.escape(WITHDRAWN)})?)")


class Remote(Base):
    """A prefix of an object store."""

    def __init__(self, url: str):
        super().__init__(url.rstrip("/"))
        if re.search(r"[*?\[]", url):
            raise StorageError(f"{url} is no base path: * ? and [ are patterns there")
        self.store = ObjectStore(url)

    def files(self, version: int) -> dict[str, File]:
        return self.store.files(self._folder(version))

    def fetch(self, version: int, into: Path) -> Path:
        into.parent.mkdir(parents=True, exist_ok=True)
        folder, partial = self._folder(version), Path(tempfile.mkdtemp(prefix=PARTIAL, dir=into.parent))
        try:
            for name, file in self.store.files(folder).items():
                path = (partial / name).resolve()
                if not path.is_relative_to(partial.resolve()):
                    raise StorageError(f"{self.path}/{folder}/{name} would be written outside of {into}")
                path.parent.mkdir(parents=True, exist_ok=True)
                self.store.download(f"{folder}/{name}", file.size, path)
            shutil.rmtree(into, ignore_errors=True)
            os.rename(partial, into)
            return into
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    def add(self, source: Path, copied: Report | None = None) -> int:
        wanted, token = contents(source), uuid.uuid4().hex
        self._used()  # a store that cannot be used is told before anything is sent
        partial = f"{PARTIAL}{token}"
        try:
            for name in wanted:
                self.store.upload(source / name, f"{partial}/{name}", copied)
            compare(wanted, self.store.files(partial))
            with self._claim(token) as number:
                self._appear(partial, str(number))
            return number
        except BaseException:
            with suppress(StorageError):  # the reason is what counts; the rest goes when it is stale
                self.discard(partial)
            raise

    @contextmanager
    def _claim(self, token: str) -> Iterator[int]:
        """A number nobody else will use. A store has no lock: of two claims on one number at least the later is aware
        of the other, and whoever is aware gives way."""
        for _ in range(CLAIMS):
            number = max(self._used().values(), default=0) + 1
            claim = f"{CLAIM}{number}-{token}"
            try:
                self.store.write(f"{claim}/owner", token.encode())
                if [name for name, used in self._used().items() if used == number] == [claim]:
                    yield number
                    return
            finally:
                with suppress(StorageError):
                    self.discard(claim)
            time.sleep(random.uniform(0, PAUSE))
        raise StorageError(f"{self.path}: others publish there all the time; try again later")

    def _used(self) -> dict[str, int]:
        """Folders that stand for a number, or for somebody's claim on one."""
        found = {name: USED.fullmatch(name) for name in self._folders()}
        return {name: int(match[1] or match[2]) for name, match in found.items() if match}

    def _appear(self, partial: str, folder: str) -> None:
        try:
            self._move(partial, folder, APPEARING)
        except BaseException:
            with suppress(StorageError):
                self.discard(folder)
            raise

    def _rename(self, folder: str, to: str) -> None:
        self._move(folder, to, VANISHING)

    def _move(self, folder: str, to: str, order: tuple[str, ...]) -> None:
        for name in self._ordered(folder, order):
            self.store.move(f"{folder}/{name}", f"{to}/{name}")

    def discard(self, folder: str) -> None:
        for name in self._ordered(folder, VANISHING):
            self.store.delete(f"{folder}/{name}")

    def _ordered(self, folder: str, order: tuple[str, ...]) -> list[str]:
        return sorted(self.store.files(folder), key=lambda name: order.index(name if name in order else OTHERS))

    def _folders(self) -> dict[str, float]:
        found: dict[str, float] = {}
        for name, file in self.store.files().items():
            folder, slash, _ = name.partition("/")
            if slash:
                found[folder] = max(file.changed, found.get(folder, 0.0))
        return found

    def _read(self, name: str) -> bytes:
        return self.store.read(name)
