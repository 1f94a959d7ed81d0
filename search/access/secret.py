"""The installation's secret: signs the ids of lists that were shown, and keys the hashes of callers' addresses."""

from __future__ import annotations

import fcntl
import hmac
import logging
import os
from contextlib import suppress
from pathlib import Path

from common.errors import InputError
from index.open import backend_of

VARIABLE = "PAUSE_SECRET_FILE"
BYTES = 32

log = logging.getLogger(__name__)


class Secret:
    """Gives a key for each purpose, and shows itself to nobody."""

    def __init__(self, value: bytes):
        self._value = value

    def key(self, purpose: str) -> bytes:
        return hmac.digest(self._value, purpose.encode(), "sha256")

    def __repr__(self) -> str:
        return "Secret(...)"


def installation_secret(index_url: str, file: str | None = None) -> Secret:
    """From the file that is given; else the one kept beside the index, which is made with the first look for it."""
    if file:
        return Secret(_given(Path(file)))
    place = backend_of(index_url).beside(index_url, "secret")
    if isinstance(place, Path):
        return Secret(_kept(place))
    from search.access.elastic_secret import kept_in_elasticsearch

    return Secret(kept_in_elasticsearch(place))


def of_this_process(where: str, why: str) -> bytes:
    """For a service that may read alone: it can keep no answers there either."""
    log.warning(
        "%s cannot keep a secret (%s): lists shown by another process, or before a restart, take no answers; %s names "
        "a file of one",
        where,
        why,
        VARIABLE,
    )
    return os.urandom(BYTES)


def _given(path: Path) -> bytes:
    try:
        value = path.read_bytes()
    except OSError as error:
        raise InputError(f"{VARIABLE} names {path}, which cannot be read: {error.strerror}") from error
    if len(value) < BYTES:
        raise InputError(
            f"{VARIABLE} names {path}, which holds {len(value)} bytes; give at least {BYTES} random ones, as "
            f"`openssl rand -hex {BYTES}` makes them"
        )
    return value


def _kept(path: Path) -> bytes:
    """One for all processes: whoever comes first makes it while the others wait for the lock. It is locked itself, and
    no file beside it as filelock would: that one would stay behind."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        with suppress(OSError):  # a folder that is only read may hold one all the same
            value = path.read_bytes()
            if len(value) == BYTES:
                return value
        return of_this_process(str(path), error.strerror or type(error).__name__)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        with suppress(PermissionError):  # another's file: theirs to close
            os.fchmod(file, 0o600)
        value = os.pread(file, BYTES + 1, 0)
        if len(value) < BYTES:  # new, or of a process killed before it could use it
            value = os.urandom(BYTES)
            os.pwrite(file, value, 0)
            os.fsync(file)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error
    finally:
        os.close(file)
    if len(value) != BYTES:
        raise InputError(f"{path} is not a secret of {BYTES} bytes; move it away, and a new one is made")
    return value
