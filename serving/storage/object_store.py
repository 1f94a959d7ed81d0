"""The objects of a store below one prefix, through fsspec: listed anew every time, and no call without a deadline.

fsspec runs the calls of a store in an event loop on a thread of its own, which a forked process does not have: such a
process opens the store anew. Which accounts and endpoints are used is fsspec's own configuration.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import fsspec
from fsspec.callbacks import Callback

from serving.storage.base import File, Report, StorageError

CALL_SECONDS, COPY_SECONDS = 60.0, 300.0  # one call may take so long; S3 copies byte by byte what Google only renames
SLOWEST = 250_000  # bytes/s; the time for a file on its way there or back is CALL_SECONDS and what it takes at this
WARN_SECONDS = 20.0  # a call that takes longer is told in the log
# What each package calls the time of an object's last change.
CHANGED = ("mtime", "updated", "LastModified", "last_modified", "modified")
REASON_LENGTH = 300  # characters; some stores answer with a whole page
log = logging.getLogger(__name__)


class ObjectStore:
    """Names are keys below `url`. Whatever keeps a store from doing what it is told is a StorageError."""

    def __init__(self, url: str):
        self.url = url.rstrip("/")
        self._pid, self._opened = os.getpid(), _file_system(self.url)
        self._root: str = self._opened._strip_protocol(self.url)
        self._silent = False  # told in the log, once until it answers again: servers ask every second

    @property
    def system(self) -> Any:
        """The file system of fsspec, for the process that asks."""
        if self._pid != os.getpid():
            self._pid, self._opened = os.getpid(), _file_system(self.url)
        return self._opened

    def files(self, folder: str = "") -> dict[str, File]:
        """The objects in a folder and below, under the rest of their keys; a console's empty folders are none."""
        start = f"{self._key(folder)}/" if folder else f"{self._root}/"
        with _told(f"{self.url}/{folder}"):
            self.system.invalidate_cache()  # not every package heeds `use_listings_cache`
            found = self._call("find", start.rstrip("/"), detail=True)
            files = {key: info for key, info in found.items() if key.startswith(start) and not key.endswith("/")}
            return {key[len(start) :]: File(int(info["size"]), _changed(info)) for key, info in files.items()}

    def read(self, name: str) -> bytes:
        with _told(f"{self.url}/{name}"):
            content: bytes = self._call("cat_file", self._key(name))
            return content

    def write(self, name: str, content: bytes) -> None:
        with _told(f"{self.url}/{name}"):
            self._call("pipe_file", self._key(name), content)

    def upload(self, source: Path, name: str, copied: Report | None = None) -> None:
        seconds = CALL_SECONDS + source.stat().st_size / SLOWEST
        with _told(f"{self.url}/{name}"):
            self._call("put_file", str(source), self._key(name), seconds=seconds, callback=_Progress(copied))

    def download(self, name: str, size: int, to: Path) -> None:
        with _told(f"{self.url}/{name}"):
            self._call("get_file", self._key(name), str(to), seconds=CALL_SECONDS + size / SLOWEST)

    def move(self, name: str, to: str) -> None:
        """A copy, and then a delete: stores have no rename."""
        with _told(f"{self.url}/{to}"):
            self._call("cp_file", self._key(name), self._key(to), seconds=COPY_SECONDS)
        self.delete(name)

    def delete(self, name: str) -> None:
        with _told(f"{self.url}/{name}"), suppress(FileNotFoundError):  # another publisher, or a try before this one
            self._call("rm_file", self._key(name))

    def _key(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _call(self, method: str, *arguments: object, seconds: float | None = None, **options: object) -> Any:
        """Not fsspec's own way to wait for its loop, which leaves the work running when the caller is interrupted."""
        system = self.system
        if not system.async_impl:
            return getattr(system, method)(*arguments, **options)
        seconds = seconds or CALL_SECONDS
        task = getattr(system, f"_{method}")(*arguments, **options)
        work = asyncio.run_coroutine_threadsafe(task, system.loop)
        try:
            first = min(WARN_SECONDS, seconds)
            if not concurrent.futures.wait([work], first).done and first < seconds and not self._silent:
                log.warning("%s: no answer for %g s; given up after %g s", self.url, first, seconds)
                self._silent = True
            if not concurrent.futures.wait([work], seconds - first).done:
                raise TimeoutError(f"no answer within {seconds:g} s")
            result = work.result()
            self._silent = False
            return result
        finally:
            work.cancel()


class _Progress(Callback):  # type: ignore[misc]  # fsspec has no types
    """Tells how many bytes are new; packages count them by sum or by difference."""

    def __init__(self, copied: Report | None):
        super().__init__()
        self._copied, self._reported = copied, 0

    def call(self, *_: object, **__: object) -> None:
        new = self.value - self._reported
        if self._copied and new > 0:
            self._reported = self.value
            self._copied(new)


def _file_system(url: str) -> Any:
    scheme, _, rest = url.partition("://")
    if not rest:
        raise StorageError(f"{url} is no base path: it names no bucket")
    # gcsfs' other half asks by gRPC what kind of bucket each one is, which flat keys can do without.
    os.environ.setdefault("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
    # It logs every failure with its traceback, and then raises it: told once is enough.
    if logging.getLogger("gcsfs").level == logging.NOTSET:
        logging.getLogger("gcsfs").setLevel(logging.CRITICAL)
    with _told(url):
        try:
            kind: Any = fsspec.get_filesystem_class(scheme)
        except ImportError as error:
            missing = getattr(error.__cause__, "name", None)
            if not missing:
                raise
            reason = f"{scheme}:// needs the Python package {missing}, which is not installed"
            raise StorageError(f"{url} cannot be used: {reason}") from error
        if kind.root_marker == "/":
            raise StorageError(f"{url} is kept in directories: mount it and name its local path")
        return kind(use_listings_cache=False)


def _changed(info: dict[str, Any]) -> float:
    """Seconds since 1970 of an object's last change, as its store has it; 0 where it tells none."""
    time = next((info[name] for name in CHANGED if info.get(name)), 0.0)
    if isinstance(time, str):
        time = datetime.fromisoformat(time)
    return time.timestamp() if isinstance(time, datetime) else float(time)


@contextmanager
def _told(url: str) -> Iterator[None]:
    """Each store has exceptions of its own: all become one that says where and why, in one line."""
    try:
        yield
    except StorageError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:REASON_LENGTH] or type(error).__name__
        if isinstance(error, FileNotFoundError):
            reason = f"there is no such bucket or object ({reason})"
        raise StorageError(f"{url} cannot be used: {reason}") from error
