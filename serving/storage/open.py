"""Which store a base path means."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from serving.storage.base import Base, StorageError
from serving.storage.local import Local


def open_base(path: str) -> Base:
    """A local path, a file:// URL, or the URL of any object store that fsspec has a package for."""
    if "://" not in path:
        return Local(Path(path))
    parts = urlsplit(path)
    if parts.scheme != "file":
        from serving.storage.remote import Remote  # takes a while to import, and a local path does without

        return Remote(path)
    if parts.netloc not in ("", "localhost"):
        raise StorageError(f"{path} names the host {parts.netloc!r}: a file:// path has three slashes")
    return Local(Path(unquote(parts.path)))
