"""Names of lists that were shown, signed, so that an answer can only be about what this installation has shown.

A name holds all that an answer is held against: no store is asked, in which the list may not be written yet, and every
service that has the same secret checks the names of the others.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import struct
import time
from collections.abc import Callable, Sequence
from hashlib import blake2b

from common.errors import InputError
from search.access.secret import Secret
from search.feedback.store import Shown

MAX_AGE = 7 * 24 * 3600  # seconds: a page stays open over a week-end
MAX_LENGTH = 1024  # letters; a list of a hundred companies has 604
_CANDIDATE, _QUESTION, _SIGNATURE = 4, 8, 16  # bytes
_HEAD = struct.Struct(f">I{_QUESTION}s")  # when, in seconds, and what was asked


class ListRefused(InputError):
    """The answer is to nothing that was shown. Code, what is wrong, what to do."""

    def __init__(self, code: str, told: str):
        super().__init__(code, told)

    def __str__(self) -> str:
        return str(self.args[1])


class ListIds:
    """`<id of the record>.<time, question and companies, hashed with the secret; signature>`."""

    def __init__(self, secret: Secret, clock: Callable[[], float] = time.time):
        self._key, self._clock = secret.key("shown lists"), clock

    def issue(self, shown: Shown) -> str:
        asked = self._question(shown.id, *_subject(shown))
        signed = _HEAD.pack(shown.at // 1_000_000, asked) + self._candidates(shown.id, shown.companies)
        return f"{shown.id}.{_text(signed + self._hash('list', shown.id, signed, _SIGNATURE))}"

    def check(self, given: str, anchor: str | None, text: str | None, candidate: str) -> str:
        """The id of the list's record; ListRefused where the answer is not to a company of that list."""
        id, _, proof = given.partition(".")
        packed = _bytes(proof)
        signed, signature = packed[:-_SIGNATURE], packed[-_SIGNATURE:]
        good = len(signed) >= _HEAD.size and hmac.compare_digest(signature, self._hash("list", id, signed, _SIGNATURE))
        if not good:
            raise ListRefused("not_shown", "No list with this id was shown by this installation")
        at, asked = _HEAD.unpack_from(signed)
        if self._clock() - at > MAX_AGE:
            raise ListRefused("list_too_old", f"This list was shown more than {MAX_AGE // 86_400} days ago")
        if not hmac.compare_digest(asked, self._question(id, *_one(anchor, text))):
            raise ListRefused("not_asked", "This list was shown for another company or text")
        candidates = signed[_HEAD.size :]
        wanted = self._candidates(id, [candidate])
        if all(candidates[at : at + _CANDIDATE] != wanted for at in range(0, len(candidates), _CANDIDATE)):
            raise ListRefused("not_on_list", "This company is not on the list that was shown")
        return id

    def _question(self, list_id: str, anchor: str | None, text: str | None) -> bytes:
        asked = f"company {anchor}" if anchor is not None else f"text {text}" if text is not None else "several"
        return self._hash("question", list_id, _encoded(asked), _QUESTION)

    def _candidates(self, list_id: str, ids: Sequence[str]) -> bytes:
        """A few bytes each. Everybody who searches waits for them: what they have in common is hashed once."""
        begun, hashes = self._begun("candidate", list_id, _CANDIDATE), []
        for id in ids:
            one = begun.copy()
            one.update(_encoded(id))
            hashes.append(one.digest())
        return b"".join(hashes)

    def _hash(self, purpose: str, list_id: str, content: bytes, length: int) -> bytes:
        begun = self._begun(purpose, list_id, length)
        begun.update(content)
        return begun.digest()

    def _begun(self, purpose: str, list_id: str, length: int) -> blake2b:
        """Keyed BLAKE2, which takes a fifth of HMAC's time."""
        return blake2b(_encoded(f"{purpose} {list_id} "), key=self._key, digest_size=length)


def _subject(shown: Shown) -> tuple[str | None, str | None]:
    """What a "similar" is about, as the page says it: the one company, or the text."""
    if shown.text:
        return (None, " ".join(shown.text.split())) if not shown.like else (None, None)
    return (shown.like[0], None) if len(shown.like) == 1 else (None, None)


def _one(anchor: str | None, text: str | None) -> tuple[str | None, str | None]:
    """Both at once are several things."""
    if anchor is not None and text:
        return None, None
    return anchor, " ".join(text.split()) if text else None


def _encoded(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def _text(packed: bytes) -> str:
    return base64.urlsafe_b64encode(packed).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    """Nothing where it is no base64; one text for each content."""
    try:
        packed = base64.b64decode(text.encode() + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return b""
    return packed if _text(packed) == text else b""
