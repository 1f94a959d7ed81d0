"""What the index keeps of a company, and how companies are picked: light, importable without any store behind it."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from common.errors import InputError
from model.contract import COMPANY_FIELDS

FILTERABLE = ("sector", "industry", "country", "tags")
MAX_ID_BYTES = 512

Vector = NDArray[np.float32]
Order = tuple[int, bool, str]


@dataclass(frozen=True)
class Document:
    """A company with its vector [d], or the tombstone of one.

    Without a vector, a document that is not deleted keeps the stored one: for changed fields around an unchanged text.
    """

    id: str
    version: int  # microseconds; the newest wins whatever the order of arrival
    name: str = ""
    description: str = ""
    sector: str = ""
    industry: str = ""
    country: str = ""
    website: str = ""
    tags: tuple[str, ...] = ()
    model: str = ""  # fingerprint of what made the vector
    text_hash: str = ""
    deleted: bool = False
    indexed_at: int = 0  # microseconds; the index sets it as it writes
    embedding: Vector | None = field(default=None, compare=False, repr=False)  # arrays have no single truth to compare

    @cached_property
    def fields_hash(self) -> str:
        """Equal for companies equal in every field: tells a change around an unchanged text."""
        values = [getattr(self, name) for name in COMPANY_FIELDS]
        return _digest(json.dumps(values).encode())

    @property
    def order(self) -> Order:
        """Of two documents of one company the one with the greater order stays, whichever came first: the newer
        version; of one version the tombstone; of two companies of one version that with the greater hash."""
        return self.version, self.deleted, "" if self.deleted else self.fields_hash

    @classmethod
    def tombstone(cls, id: str, version: int) -> Document:
        return cls(id, version, deleted=True)


@dataclass(frozen=True)
class Filters:
    """Any of the values within a field, all of the fields that have some; deleted companies never match."""

    sector: tuple[str, ...] = ()
    industry: tuple[str, ...] = ()
    country: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    exclude_ids: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in (*FILTERABLE, "exclude_ids"):
            values = getattr(self, name)
            if isinstance(values, str) or not all(isinstance(value, str) for value in values):
                raise TypeError(f"filter {name} takes several values as str, such as ('one',), got {values!r}")
            unreadable = [value for value in values if not is_unicode(value)]
            if unreadable:
                raise InputError(f"filter {name}: {unreadable[0]!r} is not valid Unicode; no company has such a value")
            object.__setattr__(self, name, tuple(values))


EVERYTHING = Filters()


def text_hash(text: str) -> str:
    """First 16 hex digits of a sha256 over the text as it is sent to the encoder."""
    return _digest(text.encode(errors="surrogatepass"))


def is_unicode(text: str) -> bool:
    """False for half of a surrogate pair, which JSON may hold and UTF-8 may not."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def fold(name: str) -> str:
    """A name as people type it: without case, accents, or double spaces."""
    if name.isascii():
        return " ".join(name.casefold().split())
    letters = (letter for letter in unicodedata.normalize("NFKD", name) if not unicodedata.combining(letter))
    return " ".join("".join(letters).casefold().split())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
