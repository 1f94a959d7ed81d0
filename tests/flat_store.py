"""An object store behind fsspec's interface: flat keys in one directory, no folders, and no rename."""

import shutil
import threading
from pathlib import Path
from urllib.parse import quote, unquote

import fsspec
from fsspec.spec import AbstractFileSystem

SCHEME = "flat"


class FlatStore(AbstractFileSystem):
    """fsspec makes one for every thread and set of options, so what it holds belongs to the class."""

    protocol = SCHEME
    root: Path
    calls: list[tuple[str, list[str]]]  # copies and deletes, as they were asked for
    fail_after: int | None = None  # so many more writes and copies succeed
    lock = threading.RLock()  # a list is of one moment, as in the stores there are

    @classmethod
    def open_in(cls, root: Path) -> str:
        cls.root, cls.calls, cls.fail_after = root, [], None
        return f"{SCHEME}://bucket/models/pause"

    @classmethod
    def keys(cls) -> list[str]:
        return sorted(unquote(path.name).removeprefix("bucket/models/pause/") for path in cls.root.iterdir())

    def _path(self, key: str) -> Path:
        return self.root / quote(key, safe="")

    def _spend(self) -> None:
        if self.fail_after is not None:
            if self.fail_after == 0:
                raise PermissionError("quota used up")
            type(self).fail_after -= 1

    def _entry(self, key: str) -> dict[str, object]:
        stat = self._path(key).stat()
        return {"name": key, "size": stat.st_size, "type": "file", "mtime": stat.st_mtime}

    def info(self, path, **options):
        return self._entry(self._strip_protocol(path))

    def find(self, path, maxdepth=None, withdirs=False, detail=False, **options):
        """Kept for the next time, as the packages of real stores do unless they are told not to."""
        if path not in self.dircache:
            with self.lock:
                keys = [unquote(held.name) for held in sorted(self.root.iterdir())]
                self.dircache[path] = below = [self._entry(key) for key in keys if key.startswith(f"{path}/")]
        else:
            below = self.dircache[path]
        return {entry["name"]: entry for entry in below} if detail else [entry["name"] for entry in below]

    def invalidate_cache(self, path=None):
        self.dircache.clear()

    def _open(self, path, mode="rb", **options):
        if mode == "wb":
            self._spend()
        return self._path(path).open(mode)

    def cp_file(self, path1, path2, **options):
        self.calls.append(("copy", [f"{SCHEME}://{path2}"]))
        self._spend()
        shutil.copyfile(self._path(path1), self._path(path2))

    def rm_file(self, path):
        self.calls.append(("delete", [f"{SCHEME}://{path}"]))
        with self.lock:
            self._path(path).unlink()


fsspec.register_implementation(SCHEME, FlatStore, clobber=True)
