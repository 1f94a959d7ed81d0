"""What a model may be called. Its name is a folder's name, too, where versions from a store are copied to."""

from __future__ import annotations

import re
from pathlib import Path

from model.errors import InputError

_WORD = re.compile(r"[A-Za-z0-9_.-]+")


class ModelNameError(InputError):
    """A name that no model may have."""


def check_name(name: str) -> str:
    """The name itself; ModelNameError where it could be taken for a path."""
    if not _WORD.fullmatch(name) or name in (".", ".."):
        raise ModelNameError(
            f"a model cannot be named {name!r}: letters a-z and A-Z, digits, '_', '.' and '-' are taken"
        )
    return name


def folder_of(name: str, parent: Path) -> Path:
    """The model's own folder below `parent`."""
    return parent / check_name(name)
