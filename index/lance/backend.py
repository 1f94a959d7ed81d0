"""The embedded back end: an address is a directory, bare or as `lance:///path`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from index.backend import Backend
from index.base import Index, Spec
from index.errors import not_an_address

LIVE = "live.json"  # in the directory of every index; names the live table
DEPTHS = (f"*/{LIVE}", f"*/*/{LIVE}", f"*/*/*/{LIVE}")


class LanceBackend(Backend):
    """A directory of this machine, with what belongs to it beside."""

    name = "lance"
    is_remote = False

    def open(self, url: str, create: Spec | None, retry_seconds: float | None) -> Index:
        """`retry_seconds` means nothing here: there is no server to wait for."""
        from index.lance.store import open_lance  # LanceDB takes a second to import

        return open_lance(url, path_of(url), create)

    def local(self, url: str, what: str) -> Path:
        path = path_of(url)
        return path.with_name(f"{path.name}-{what}")

    def identity(self, url: str) -> str:
        return str(path_of(url).resolve())

    def found_in(self, folder: Path) -> Iterator[str]:
        for depth in DEPTHS:
            yield from sorted(str(mark.parent) for mark in folder.glob(depth))


def path_of(url: str) -> Path:
    scheme, separator, path = url.partition("://")
    if not separator and url:
        return Path(url).expanduser()
    if scheme == "lance" and path.startswith("/"):
        return Path(path)
    raise not_an_address(url)


LANCE = LanceBackend()
