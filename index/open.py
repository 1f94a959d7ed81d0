"""From an address to its index. Which back end an address means is decided here alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from index.backend import Backend
from index.base import Index, Spec
from index.elastic.backend import ELASTIC
from index.errors import not_an_address
from index.lance.backend import LANCE

# By the scheme of an address. A new back end is one line more.
BACKENDS: dict[str, Backend] = {
    "lance": LANCE,  # and a bare path
    "http": ELASTIC,
    "https": ELASTIC,
}


def backend_of(url: str) -> Backend:
    scheme, separator, _ = url.partition("://")
    backend = BACKENDS.get(scheme) if separator else LANCE
    if backend is None:
        raise not_an_address(url)
    return backend


def open_index(url: str, create: Spec | None = None, retry_seconds: float | None = None) -> Index:
    """The index at `url`. Missing: made for `create`, or IndexMissing. There, but for another model: WrongModel.

    `retry_seconds` is for readers with somebody waiting: so long a server that is away is tried again, instead of for
    minutes, and an alias that moved is followed within a second, instead of at once.
    """
    return backend_of(url).open(url, create, retry_seconds)


def indices_in(folder: Path) -> Iterator[str]:
    """The addresses of all indices with files in a local folder or below it."""
    for backend in dict.fromkeys(BACKENDS.values()):
        yield from backend.found_in(folder)
