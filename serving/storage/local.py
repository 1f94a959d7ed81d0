"""A base path on this machine: a version appears and vanishes by one rename."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from model.export import take_number
from serving.storage.base import PARTIAL, Base, File, Report, compare, contents, pour, stat_files


class Local(Base):
    """A folder of this machine."""

    def __init__(self, directory: Path):
        super().__init__(str(directory))
        self.directory = directory

    def files(self, version: int) -> dict[str, File]:
        return stat_files(self.directory / self._folder(version))

    def fetch(self, version: int, into: Path) -> Path:
        return self.directory / self._folder(version)

    def add(self, source: Path, copied: Report | None = None) -> int:
        wanted = contents(source)
        self.directory.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=PARTIAL, dir=self.directory))
        try:
            for name in wanted:
                target = partial / name
                target.parent.mkdir(parents=True, exist_ok=True)
                with (source / name).open("rb") as reader, target.open("wb") as writer:
                    pour(reader, writer, copied)
            compare(wanted, stat_files(partial))
            partial.chmod(0o755)  # mkdtemp makes it private, and a server may run as another user
            return int(take_number(partial, self.directory).name)
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    def _folders(self) -> dict[str, float]:
        found = {}
        for path in self.directory.iterdir() if self.directory.exists() else ():
            with suppress(FileNotFoundError):  # renamed or removed since it was listed
                if path.is_dir():
                    found[path.name] = path.stat().st_mtime
        return found

    def _read(self, name: str) -> bytes:
        return (self.directory / name).read_bytes()

    def _rename(self, folder: str, to: str) -> None:
        os.rename(self.directory / folder, self.directory / to)

    def discard(self, folder: str) -> None:
        hidden = Path(tempfile.mkdtemp(prefix=PARTIAL, dir=self.directory))
        try:
            with suppress(FileNotFoundError):  # another publisher removed it
                os.rename(self.directory / folder, hidden / folder)
        finally:
            shutil.rmtree(hidden, ignore_errors=True)
