"""From an address to an index: a path or `lance:///path` is embedded, `http(s)://host:9200/alias` Elasticsearch."""

from __future__ import annotations

from pathlib import Path

from index.base import Index, Spec
from index.errors import IndexUnusable


def open_index(url: str, create: Spec | None = None, patience: float | None = None) -> Index:
    """The index at `url`. Missing: made for `create`, or IndexMissing. There, but for another model: WrongModel.

    `patience` is for whoever reads while somebody waits: for so many seconds a server that is away is tried again,
    instead of minutes, and an alias that moved is followed within a second, instead of at once.
    """
    # Either store costs seconds to import: only the one that is asked for.
    if url.startswith(("http://", "https://")):
        from index.elastic.store import open_elastic

        index: Index = open_elastic(url, create, patience)
        return index
    from index.lance.store import open_lance

    return open_lance(url, _path(url), create)


def _path(url: str) -> Path:
    scheme, separator, path = url.rpartition("://")
    if not separator and path:
        return Path(path).expanduser()
    if scheme == "lance" and path.startswith("/"):
        return Path(path)
    raise IndexUnusable(
        f"{url!r} is not the address of an index: give lance:///path/to/directory, a path, or http(s)://host:9200/alias"
    )
