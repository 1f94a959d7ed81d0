"""What the rest of the house may ask of a back end: to open an index, and what an address of one means.

A new back end is a folder with one of these, and one line in `index/open.py`; docs/new-back-end.md says how.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from index.base import Index, Spec

Result = TypeVar("Result")


class Backend(ABC):
    """Asked while flags are read: whatever takes long to import is imported inside `open` and `beside`."""

    name: str  # as health checks and the page show it
    is_remote: bool  # any machine reaches an index by its address

    @abstractmethod
    def open(self, url: str, create: Spec | None, retry_seconds: float | None) -> Index:
        """As `open_index` in index/open.py."""

    @abstractmethod
    def local(self, url: str, what: str) -> Path:
        """The path on this machine for what belongs to an index, such as its dead letters; no two share one."""

    def beside(self, url: str, what: str) -> Path | Sibling:
        """Where all who share an index keep what belongs to it, such as feedback: a local path, in a folder that is
        there, unless the server of the index can keep it."""
        return self.local(url, what)

    def identity(self, url: str) -> str:
        """Equal for two addresses of one index."""
        return url

    def found_in(self, folder: Path) -> Iterator[str]:
        """Addresses of the indices whose files are in a local folder or below it."""
        yield from ()


class Sibling(Protocol):
    """A second index on the same Elasticsearch, named after the first: <alias>-feedback, say."""

    url: str
    name: str
    client: Any  # elasticsearch.Elasticsearch, which costs a second to import

    def call(self, request: Callable[[], Result], seconds: float) -> Result:
        """The response to a request; one that fails in a manner that passes is sent again for so many seconds."""

    def pages(self, query: dict[str, Any], size: int, seconds: float) -> Iterator[list[dict[str, Any]]]:
        """All hits of a query, as of one moment, `size` at a time; each request as by `call`."""

    def reason(self, error: Any) -> str:
        """Of an exception, or of an error inside a response: what the server says, in one line."""
