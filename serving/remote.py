"""A base path in an object store, through Beam's file systems: flat keys, no folders, and no rename of many at once.

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
from typing import IO, Any

from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

from model.export import WITHDRAWN
from serving.storage import (
    CLAIM,
    FACTS_FILE,
    PARTIAL,
    SAVED_MODEL,
    Base,
    File,
    Report,
    StorageError,
    compare,
    contents,
    pour,
)

OTHERS = "*"  # all files but the two that servers look for
APPEARING, VANISHING = (OTHERS, SAVED_MODEL, FACTS_FILE), (SAVED_MODEL, FACTS_FILE, OTHERS)
CLAIMS, PAUSE = 20, 1.0  # how often a number is tried for, and the seconds at most in between
USED = re.compile(rf"(?:{re.escape(CLAIM)}([0-9]+)-.*|([0-9]+)(?:{re.escape(WITHDRAWN)})?)")


class Remote(Base):
    def __init__(self, url: str):
        super().__init__(url.rstrip("/"))
        if re.search(r"[*?\[]", url):
            raise StorageError(f"{url} is no base path: * ? and [ are patterns there")
        with _told(url):
            # Outside of a pipeline Beam hands on no options at all, which S3 and Azure fail on; the defaults will do.
            kind: Any = type(FileSystems.get_filesystem(url))
            self.system = kind(pipeline_options=PipelineOptions([]))
        if self.system.has_dirs():
            raise StorageError(f"{url} is kept in directories: mount it and name its local path")

    def files(self, version: int) -> dict[str, File]:
        return self._list(f"{self._folder(version)}/")

    def fetch(self, version: int, into: Path) -> Path:
        into.parent.mkdir(parents=True, exist_ok=True)
        folder, partial = self._folder(version), Path(tempfile.mkdtemp(prefix=PARTIAL, dir=into.parent))
        try:
            for name in self._list(f"{folder}/"):
                path = (partial / name).resolve()
                if not path.is_relative_to(partial.resolve()):
                    raise StorageError(f"{self.path}/{folder}/{name} would be written outside of {into}")
                path.parent.mkdir(parents=True, exist_ok=True)
                with self._open(f"{folder}/{name}") as reader, path.open("wb") as writer:
                    pour(reader, writer)
            shutil.rmtree(into, ignore_errors=True)
            os.rename(partial, into)
            return into
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    def add(self, source: Path, copied: Report | None = None) -> int:
        wanted, token = contents(source), uuid.uuid4().hex
        partial = f"{PARTIAL}{token}"
        try:
            for name in wanted:
                with (source / name).open("rb") as reader, self._create(f"{partial}/{name}") as writer:
                    pour(reader, writer, copied)
            compare(wanted, self._list(f"{partial}/"))
            with self._claim(token) as number:
                self._appear(partial, str(number))
            return number
        except BaseException:
            with suppress(StorageError):  # the reason is what counts; the rest goes when it is stale
                self._discard(partial)
            raise

    @contextmanager
    def _claim(self, token: str) -> Iterator[int]:
        """A number nobody else will use. A store has no lock: of two claims on one number at least the later is aware
        of the other, and whoever is aware gives way."""
        for _ in range(CLAIMS):
            number = max(self._used().values(), default=0) + 1
            claim = f"{CLAIM}{number}-{token}"
            try:
                with self._create(f"{claim}/owner") as writer:
                    writer.write(token.encode())
                if [name for name, used in self._used().items() if used == number] == [claim]:
                    yield number
                    return
            finally:
                with suppress(StorageError):
                    self._discard(claim)
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
                self._discard(folder)
            raise

    def _rename(self, folder: str, to: str) -> None:
        self._move(folder, to, VANISHING)

    def _move(self, folder: str, to: str, order: tuple[str, ...]) -> None:
        for keys in self._steps(folder, order):
            with _told(f"{self.path}/{to}"):
                self.system.rename(keys, [f"{self.path}/{to}{key[len(self.path) + 1 + len(folder) :]}" for key in keys])

    def _discard(self, folder: str) -> None:
        for keys in self._steps(folder, VANISHING):
            with _told(f"{self.path}/{folder}"):
                self.system.delete(keys)

    def _steps(self, folder: str, order: tuple[str, ...]) -> Iterator[list[str]]:
        """The keys of a folder, one list after the other: a store keeps no order within a list."""
        names = list(self._list(f"{folder}/"))
        for step in order:
            chosen = [name for name in names if step == (name if name in order else OTHERS)]
            if chosen:
                yield [f"{self.path}/{folder}/{name}" for name in chosen]

    def _folders(self) -> dict[str, float]:
        found: dict[str, float] = {}
        for name, file in self._list("").items():
            folder, slash, _ = name.partition("/")
            if slash:
                found[folder] = max(file.changed, found.get(folder, 0.0))
        return found

    def _list(self, prefix: str) -> dict[str, File]:
        """The files whose keys begin with a prefix, under the rest of the key; a console's empty folders are none."""
        start = f"{self.path}/{prefix}"
        with _told(start):
            found = self.system.match([f"{start}**"])[0].metadata_list
        files = {each.path[len(start) :]: each for each in found if not each.path.endswith("/")}
        return {name: File(each.size_in_bytes, each.last_updated_in_seconds or 0.0) for name, each in files.items()}

    def _read(self, name: str) -> bytes:
        with self._open(name) as reader:
            return reader.read()

    @contextmanager
    def _open(self, name: str) -> Iterator[IO[bytes]]:
        url = f"{self.path}/{name}"
        with _told(url), self.system.open(url, compression_type=CompressionTypes.UNCOMPRESSED) as reader:
            yield reader

    @contextmanager
    def _create(self, name: str) -> Iterator[IO[bytes]]:
        url = f"{self.path}/{name}"
        with _told(url), self.system.create(url, compression_type=CompressionTypes.UNCOMPRESSED) as writer:
            yield writer


@contextmanager
def _told(url: str) -> Iterator[None]:
    """Each store has exceptions of its own, and Beam wraps some of them: all become one that says where and why."""
    try:
        yield
    except StorageError:
        raise
    except Exception as error:
        reason: object = error
        while details := getattr(reason, "exception_details", None):
            reason = next(iter(details.values())) if isinstance(details, dict) else details
        raise StorageError(f"{url} cannot be used: {' '.join(str(reason).split())}") from error
