"""An object store behind Beam's own interface, to read from: flat keys in one directory, no folders."""

from pathlib import Path
from urllib.parse import quote, unquote

from apache_beam.io.filesystem import FileMetadata, FileSystem

SCHEME = "beamstore"


class BeamStore(FileSystem):
    """Beam finds it by its scheme and makes a new one for every URL, so what it holds belongs to the class."""

    root: Path

    @classmethod
    def open_in(cls, root: Path) -> str:
        cls.root = root
        return f"{SCHEME}://bucket/companies"

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
        urls = [f"{SCHEME}://{unquote(path.name)}" for path in sorted(self.root.iterdir())]
        return [self.metadata(url) for url in urls if url.startswith(dir_or_prefix)]

    def create(self, path, mime_type="application/octet-stream", compression_type="auto"):
        return self._path(path).open("wb")

    def open(self, path, mime_type="application/octet-stream", compression_type="auto"):
        return self._path(path).open("rb")

    def copy(self, source_file_names, destination_file_names):
        raise NotImplementedError

    rename = copy

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
        raise NotImplementedError
