"""The client the rest of the system calls: texts in, vectors and fingerprints out, over TensorFlow Serving's gRPC."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass

import numpy as np

from common.errors import InputError
from model.contract import MODEL_NAME, Contract
from serving.endpoint.channel import Abandoned, Endpoint, Refused, ServingUnavailable
from serving.endpoint.connection import TlsFiles
from serving.endpoint.messages import Vectors, contract_of, predict_request, vectors_of
from serving.endpoint.versions import Versions
from serving.tracing import spans

TOKENS_PER_REQUEST = 8192
TEXTS_PER_REQUEST = 256
BYTES_PER_REQUEST = 3_500_000  # gRPC servers take 4 MB unless told otherwise; the rest is room for the envelope
BYTES_PER_TOKEN = 4  # of English, roughly: only the balance of batches depends on it

Outcome = tuple[Vectors, str] | Refused  # of one text: its vector [d] and the fingerprint, or why there is none


@dataclass(frozen=True)
class Refusal:
    """A text that the server will not encode, and why."""

    position: int
    text: str
    reason: str


class TextsRefused(InputError):
    """Some texts were refused; all others have their vectors in here, and the refused ones zeros and no fingerprint."""

    def __init__(self, refusals: list[Refusal], vectors: Vectors, fingerprints: list[str]):
        super().__init__(refusals, vectors, fingerprints)  # the arguments themselves: Beam pickles exceptions
        self.refusals, self.vectors, self.fingerprints = refusals, vectors, fingerprints

    def __str__(self) -> str:
        first = self.refusals[0]
        return (
            f"{len(self.refusals)} of {len(self.fingerprints)} texts refused, the first at position {first.position} "
            f"({first.text[:40]!r}): {first.reason}"
        )


class EmbeddingClient:
    """Sorts by length, splits by tokens and bytes, keeps several requests in flight, and isolates what is refused."""

    def __init__(
        self,
        addresses: Sequence[str],
        model: str = MODEL_NAME,
        *,
        in_flight: int = 4,
        timeout: float = 30.0,
        deadline: float = 300.0,
        tls: TlsFiles | None = None,
    ):
        """`in_flight` requests of one call at a time; `timeout` is for one try of a request, `deadline` for a request
        with all its retries, both in seconds."""
        if in_flight < 1:
            raise ValueError(f"in_flight must be at least 1, got {in_flight}")
        self._model, self._in_flight = model, in_flight
        self._endpoint = Endpoint(addresses, timeout, deadline, tls)
        self._versions = Versions(self._endpoint, model)
        self._contract: Contract | None = None

    def embed(self, texts: Iterable[str], model: str | None = None) -> tuple[Vectors, list[str]]:
        """Vectors float32 [n, d] and the fingerprint of the model that made each; TextsRefused where some cannot be.

        With the fingerprint of a `model`, by that very model, newest or not; ModelNotServed where it is not served."""
        if isinstance(texts, str | bytes):
            raise TypeError(f"texts are a list of str, got one {type(texts).__name__}: {texts[:40]!r}")
        texts = list(texts)
        rows: dict[bytes, int] = {}  # equal texts are sent once
        places = [rows.setdefault(_utf8(text, position), len(rows)) for position, text in enumerate(texts)]
        with spans.span("embed", texts=len(rows)):
            contract = self.contract(model)
            outcomes = self._encode(list(rows), contract.max_tokens, model)
        vectors, fingerprints = _stacked(outcomes, contract.dimension)
        if model is None and any(made and made != contract.fingerprint for made in fingerprints):
            self._contract = None  # the server changed its model: whoever asks next is told what that one promises
        vectors, fingerprints = vectors[places], [fingerprints[place] for place in places]
        refusals = _refusals(texts, [outcomes[place] for place in places])
        if refusals:
            raise TextsRefused(refusals, vectors, fingerprints)
        return vectors, fingerprints

    def contract(self, model: str | None = None) -> Contract:
        """What the newest model promises; asked once, and again when vectors came from another one. With a
        fingerprint, what that model promises; ModelNotServed where it was not served when it was first asked for."""
        if model is not None:
            return self._versions.contract(model)
        known = self._contract
        if known is None:
            try:
                response = self._endpoint.predict(predict_request(self._model, "contract", [b""]))
                known = self._contract = contract_of(response)
            except InputError:
                raise
            except (ValueError, LookupError, TypeError) as error:
                raise ServingUnavailable(
                    f"model {self._model!r} at {', '.join(self._endpoint.addresses)} states no contract; "
                    f"serve one that `python -m model.export` made ({error})"
                ) from error
        return known

    def served(self) -> dict[str, int]:
        """Fingerprint -> version of every model that can be asked for at this moment, the newest first."""
        return self._versions.served()

    def close(self) -> None:
        self._endpoint.close()

    def __enter__(self) -> EmbeddingClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _encode(self, texts: Sequence[bytes], max_tokens: int, model: str | None) -> list[Outcome]:
        """One outcome a text; the first part that fails for good ends the others, which nobody would read."""
        parts = split([len(text) for text in texts], max_tokens)
        abandoned = threading.Event()

        def encode(rows: list[int]) -> zip[tuple[int, Outcome]]:
            try:
                return zip(rows, self._isolated([texts[row] for row in rows], model, abandoned), strict=True)
            except BaseException:
                abandoned.set()  # here, before this thread takes the next part
                raise

        found: dict[int, Outcome] = {}
        if len(parts) == 1:  # waking a thread would take longer than all else here
            found.update(encode(parts[0]))
        else:
            pool = ThreadPoolExecutor(self._in_flight, thread_name_prefix="embed")
            try:
                below = spans.carried(encode)
                for done in as_completed([pool.submit(below, rows) for rows in parts]):
                    if not isinstance(done.exception(), Abandoned):  # the part that made it so is still to come
                        found.update(done.result())
            finally:
                abandoned.set()
                pool.shutdown(wait=False, cancel_futures=True)
        return [found[row] for row in range(len(texts))]

    def _isolated(self, texts: list[bytes], model: str | None, abandoned: threading.Event) -> list[Outcome]:
        """One outcome a text: a refused request is halved until the texts at fault stand alone."""
        try:
            request = predict_request(self._model, "serving_default", texts)
            if model is None:
                response = self._endpoint.predict(request, abandoned)
            else:
                response = self._versions.predict(request, model, abandoned)
            return [*vectors_of(response, len(texts))]
        except Refused as refused:
            if len(texts) == 1:
                return [refused]
            middle = len(texts) // 2
            first, rest = texts[:middle], texts[middle:]
            return self._isolated(first, model, abandoned) + self._isolated(rest, model, abandoned)


def split(sizes: Sequence[int], max_tokens: int) -> list[list[int]]:
    """Positions by falling size in bytes, cut so that padded tokens, texts and bytes of a request stay in bounds."""
    parts: list[list[int]] = []
    longest = total = 0
    for position in sorted(range(len(sizes)), key=lambda row: -sizes[row]):
        size = sizes[position]
        rows = len(parts[-1]) + 1 if parts else 1
        too_much = rows * longest > TOKENS_PER_REQUEST or rows > TEXTS_PER_REQUEST or total + size > BYTES_PER_REQUEST
        if not parts or too_much:
            parts.append([])
            longest, total = min(size // BYTES_PER_TOKEN + 2, max_tokens), 0  # start and end have a token each
        parts[-1].append(position)
        total += size
    return parts


def _utf8(text: str, position: int) -> bytes:
    if not isinstance(text, str):
        raise TypeError(f"texts must be str, got {type(text).__name__} at position {position}: {repr(text)[:40]}")
    try:
        return text.encode()
    except UnicodeEncodeError:  # a surrogate without its other half becomes U+FFFD, as the model reads broken bytes
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _stacked(outcomes: Sequence[Outcome], dimension: int) -> tuple[Vectors, list[str]]:
    """Vectors [n, d] and fingerprints, zeros and "" where refused; `dimension` is for when nothing came back."""
    good = {row: outcome for row, outcome in enumerate(outcomes) if not isinstance(outcome, Refused)}
    widths = {len(vector): name for vector, name in good.values()} or {dimension: ""}
    if len(widths) > 1:
        made = " and ".join(f"{width} numbers from model {name}" for width, name in sorted(widths.items()))
        raise ServingUnavailable(f"vectors of {made} in one call: the server changed its model; embed the texts again")
    vectors, fingerprints = np.zeros((len(outcomes), *widths), np.float32), [""] * len(outcomes)
    for row, (vector, name) in good.items():
        vectors[row], fingerprints[row] = vector, name
    return vectors, fingerprints


def _refusals(texts: Sequence[str], outcomes: Sequence[Outcome]) -> list[Refusal]:
    pairs = enumerate(zip(texts, outcomes, strict=True))
    return [Refusal(position, text, out.reason) for position, (text, out) in pairs if isinstance(out, Refused)]
