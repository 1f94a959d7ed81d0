"""Settings of the search service. Flags and environment are read in `__main__` only; all else reads this."""

from __future__ import annotations

from dataclasses import dataclass

from common.errors import InputError
from search.access.addresses import LOCAL
from search.feedback.store import BOUND


@dataclass(frozen=True)
class Settings:
    """Frozen; a wrong value raises InputError with the flag's name."""

    keys: str | None = None  # file of hashed API keys; without one everybody may ask
    rate: float = 30.0  # requests a second of one caller, in the long run; 0 is no limit
    burst: int = 90  # and at once: a page that opens, and someone who types
    body_bytes: int = 256 * 1024
    body_seconds: float = 15.0  # until all of a body is there
    hosts: tuple[str, ...] = LOCAL  # names the service answers to; `*` is any
    any_address: bool = False  # and whatever address it is asked by
    cached_vectors: int = 20_000  # of sentences and queries: 30 MB of 384 numbers each
    secret_file: str | None = None  # without one the secret is kept beside the index
    feedback_bytes: int = BOUND  # that lists and answers may fill
    log_queries: bool = False  # what people look for is their own affair

    def __post_init__(self) -> None:
        if not 0 <= self.rate < float("inf"):
            raise InputError(f"--rate must be a number of requests a second, or 0 for no limit; got {self.rate}")
        if not 0 < self.body_seconds < float("inf"):
            raise InputError(f"body_seconds must be a time above 0, got {self.body_seconds}")
        for name in ("burst", "body_bytes", "cached_vectors", "feedback_bytes"):
            if getattr(self, name) < 1:
                raise InputError(f"--{name} must be at least 1, got {getattr(self, name)}")
