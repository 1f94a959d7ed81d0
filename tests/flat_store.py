"""An object store behind Beam's own interface: flat keys in one directory, no folders, rename is copy and delete."""

import shutil
import threading
from pathlib import Path
from urllib.parse import quote, unquote

from apache_beam.io.filesystem import BeamIOError, FileMetadata, FileSystem

SCHEME = "flat"


class FlatStore(FileSystem):
    """Beam finds it by its scheme and makes a new one for every URL, so what it holds belongs to the class."""

    root: Path
    calls: list[tuple[str, list[str]]]  # renames and deletes, as they were asked for
    fail_after: int | None = None  # so many more writes and renames succeed
    lock = threading.RLock()  # a list is of one moment, as in the stores there are

    def __init__(self, pipeline_options):
        super().__init__(pipeline_options)
        self.options = pipeline_options

    @classmethod
    def open_in(cls, root: Path) -> str:
        cls.root, cls.calls, cls.fail_after = root, [], None
        return f"{SCHEME}://bucket/models/pause"

    @classmethod
    def keys(cls) -> list[str]:
        return sorted(unquote(path.name).removeprefix("bucket/models/pause/") for path in cls.root.iterdir())

    @classmethod
    def scheme(cls):
        return SCHEME

    def join(self, basepath, *paths):
        return "/".join([basepath.rstrip("/"), *paths])

    def split(self, path):
        return tuple(path.rsplit("/", 1))

    def mkdirs(self, path):
        pass

    def has_dirs(self):
        return False

    def _path(self, url: str) -> Path:
        return self.root / quote(url.removeprefix(f"{SCHEME}://"), safe="")

    def _list(self, dir_or_prefix):
        with self.lock:
            urls = [f"{SCHEME}://{unquote(path.name)}" for path in sorted(self.root.iterdir())]
            return [self.metadata(url) for url in urls if url.startswith(dir_or_prefix)]

    def _spend(self) -> None:
        if self.fail_after is not None:
            if self.fail_after == 0:
                raise PermissionError("quota used up")
            type(self).fail_after -= 1

    def create(self, path, mime_type="application/octet-stream", compression_type="auto"):
        self._spend()
        return self._path(path).open("wb")

    def open(self, path, mime_type="application/octet-stream", compression_type="auto"):
        return self._path(path).open("rb")

    def copy(self, source_file_names, destination_file_names):
        for source, target in zip(source_file_names, destination_file_names, strict=True):
            shutil.copyfile(self._path(source), self._path(target))

    def rename(self, source_file_names, destination_file_names):
        self.calls.append(("rename", list(destination_file_names)))
        for source, target in zip(source_file_names, destination_file_names, strict=True):
            try:
                self._spend()
            except OSError as error:
                raise BeamIOError("Rename operation failed", {(source, target): error}) from error
            self.copy([source], [target])
            self.delete([source])

    def exists(self, path):
        return self._path(path).exists()

    def size(self, path):
        return self._path(path).stat().st_size

    def last_updated(self, path):
        return self._path(path).stat().st_mtime

    def checksum(self, path):
        return str(self.size(path))

    def metadata(self, path):
        return FileMetadata(path, self.size(path), self.last_updated(path))

    def delete(self, paths):
        self.calls.append(("delete", list(paths)))
        with self.lock:
            for path in paths:
                self._path(path).unlink()
