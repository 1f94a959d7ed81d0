"""How long a sick Elasticsearch is waited for, and what is said when it stays so."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any, TypeVar

from elastic_transport import TlsError, TransportError
from elasticsearch import ApiError

from index.elastic.cluster.connection import ADVICE
from index.errors import IndexUnavailable, IndexUnusable

TOO_MANY = 429
SECONDS = 120.0  # a restart takes 20 to 60
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0

Result = TypeVar("Result")


class Retry:
    """Tries again what failed in a manner that passes, with growing pauses, for so many seconds without progress.
    One for each piece of work. `check` is called before each further try, and raises where there must be none.

    Not tenacity: that counts the time of one call, and here one budget spans all requests of a piece of work, begins
    anew with every progress, and is spent on items that failed inside of responses that did not."""

    def __init__(self, url: str, seconds: float | None = None, check: Callable[[], object] = lambda: None):
        self.url, self.seconds = url, SECONDS if seconds is None else seconds
        self._check = check
        self.progress()

    def progress(self) -> None:
        self._tries, self._since = 0, time.monotonic()

    def call(self, request: Callable[[], Result]) -> Result:
        """Requests the server refuses for good raise as they are; one that stays away raises IndexUnavailable."""
        while True:
            try:
                return request()
            except (TransportError, ApiError) as error:
                if not passes(error):
                    raise explained(self.url, error) from error
                self.pause(_said(error), error)

    def pause(self, reason: str, cause: BaseException | None = None) -> None:
        """Half of it by chance: those that were refused together must not come back together."""
        self._tries += 1
        length = min(LONGEST_PAUSE, FIRST_PAUSE * 2**self._tries) * random.uniform(0.5, 1.0)
        if time.monotonic() - self._since + length > self.seconds:
            raise IndexUnavailable(f"{self.url} did not answer for {self.seconds:.0f} s: {reason}") from cause
        time.sleep(length)
        self._check()


def passes(error: Exception) -> bool:
    if isinstance(error, ApiError):
        # An illegal state is one that the request would make, such as two live indices: it would be so the next time.
        return error.status_code == TOO_MANY or (error.status_code >= 500 and error.error != "illegal_state_exception")
    return isinstance(error, TransportError) and not isinstance(error, TlsError)


def explained(url: str, error: Exception) -> Exception:
    """In words that help, where a person can put it right."""
    if isinstance(error, TlsError):
        return IndexUnusable(
            f"{url} cannot be trusted: {_said(error)}; PAUSE_ES_CA names the PEM file of its authority, "
            f"and http:// is for a server without TLS"
        )
    if isinstance(error, ApiError) and error.status_code in (401, 403):
        return IndexUnusable(f"{url} refused access ({error.status_code}): {_said(error)}; {ADVICE}")
    if isinstance(error, ApiError) and 300 <= error.status_code < 400:
        return IndexUnusable(
            f"{url} points to another address ({error.status_code}): give that one; "
            f"redirects are not followed, since keys would go along"
        )
    return error


def _said(error: Exception) -> str:
    if isinstance(error, ApiError):
        return f"{error.status_code} {reason(error.body)}".strip()
    return " ".join(str(error).split())[:300]


def reason(body: Any) -> str:
    """The innermost cause that Elasticsearch names, which is the one that helps."""
    error = body.get("error", body) if isinstance(body, dict) else body
    if not isinstance(error, dict):
        return " ".join(str(error or "").split())[:300]
    said = str(error.get("reason", ""))
    cause = error.get("caused_by")
    while isinstance(cause, dict):
        said, cause = f"{said}: {cause.get('reason', '')}", cause.get("caused_by")
    return " ".join(said.split())[:500]
