"""Restricts the base paths that clients may name to folders and URLs below those that the operator named."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from common.errors import InputError


class OutsideRoots(InputError):
    """A base path that is not below any of the roots."""


class Roots:
    """Local folders, and URLs of stores; whatever is below one of them is allowed."""

    def __init__(self, paths: Iterable[str]):
        self._paths = tuple(dict.fromkeys(paths))

    def check(self, base_path: str) -> None:
        """Raises OutsideRoots. Symbolic links and `..` are followed on both sides, and anew each time: an operator may
        move what a link leads to."""
        if not any(_is_below(base_path, root) for root in self._paths):
            allowed = ", ".join(self._paths)
            raise OutsideRoots(f"base_path {base_path!r} is not below {allowed}; --reload_roots allows more")


def _is_below(path: str, root: str) -> bool:
    try:
        local, local_root = _local(path), _local(root)
        if local is None or local_root is None:
            return local is local_root and _is_prefix(root, path)
        return local.resolve().is_relative_to(local_root.resolve())
    except (OSError, RuntimeError, ValueError):  # a loop of links, a NUL: it is no place at all
        return False


def _local(path: str) -> Path | None:
    """As storage.open_base reads it; None for a store."""
    if "://" not in path:
        return Path(path)
    parts = urlsplit(path)
    if parts.scheme != "file":
        return None
    if parts.netloc not in ("", "localhost"):
        raise ValueError(f"{path} is on another host")
    return Path(unquote(parts.path))


def _is_prefix(root: str, url: str) -> bool:
    # Keys of a store are not resolved, but libraries on the way to it may do so.
    if {".", ".."} & set(unquote(url).replace("\\", "/").split("/")):
        return False
    root = root.rstrip("/")
    return url.rstrip("/") == root or url.startswith(f"{root}/")
