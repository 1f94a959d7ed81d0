"""Checks names of models: each is also the name of the folder that its versions are copied to from a store."""

from __future__ import annotations

import re
from pathlib import Path

from common.errors import InputError

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
