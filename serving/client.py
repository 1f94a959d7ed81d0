"""The client the rest of the system calls: texts in, vectors and fingerprints out, over TensorFlow Serving's gRPC."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model.contract import MODEL_NAME, Contract
from model.errors import InputError
from serving import wire_pb2 as wire
from serving.channel import Abandoned, Endpoint, Refused, ServingUnavailable, TlsFiles

TOKENS_PER_REQUEST = 8192
TEXTS_PER_REQUEST = 256
BYTES_PER_REQUEST = 3_500_000  # gRPC servers take 4 MB unless told otherwise; the rest is room for the envelope
BYTES_PER_TOKEN = 4  # of English, roughly: only the balance of batches depends on it

Vectors = NDArray[np.float32]
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
        self._contract: Contract | None = None

    def embed(self, texts: Iterable[str]) -> tuple[Vectors, list[str]]:
        """Vectors float32 [n, d] and the fingerprint of the model that made each; TextsRefused where some cannot be."""
        if isinstance(texts, str | bytes):
            raise TypeError(f"texts are a list of str, got one {type(texts).__name__}: {texts[:40]!r}")
        texts = list(texts)
        rows: dict[bytes, int] = {}  # equal texts are sent once
        places = [rows.setdefault(_utf8(text, position), len(rows)) for position, text in enumerate(texts)]
        contract = self.contract()
        outcomes = self._encode(list(rows), contract.max_tokens)
        vectors, fingerprints = _stacked(outcomes, contract.dimension)
        if any(made and made != contract.fingerprint for made in fingerprints):
            self._contract = None  # the server changed its model: whoever asks next is told what that one promises
        vectors, fingerprints = vectors[places], [fingerprints[place] for place in places]
        refusals = _refusals(texts, [outcomes[place] for place in places])
        if refusals:
            raise TextsRefused(refusals, vectors, fingerprints)
        return vectors, fingerprints

    def contract(self) -> Contract:
        """What the server's model promises; asked once, and again when vectors came from another model."""
        known = self._contract
        if known is None:
            try:
                outputs = self._endpoint.predict(predict_request(self._model, "contract", [b""])).outputs
                known = self._contract = Contract.from_json(outputs["contract"].string_val[0])
            except InputError:
                raise
            except (ValueError, LookupError, TypeError) as error:
                raise ServingUnavailable(
                    f"model {self._model!r} at {', '.join(self._endpoint.addresses)} states no contract; "
                    f"serve one that `python -m model.export` made ({error})"
                ) from error
        return known

    def close(self) -> None:
        self._endpoint.close()

    def __enter__(self) -> EmbeddingClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _encode(self, texts: Sequence[bytes], max_tokens: int) -> list[Outcome]:
        """One outcome a text; the first part that fails for good ends the others, which nobody would read."""
        parts = split([len(text) for text in texts], max_tokens)
        abandoned = threading.Event()

        def encode(rows: list[int]) -> zip[tuple[int, Outcome]]:
            try:
                return zip(rows, self._isolated([texts[row] for row in rows], abandoned), strict=True)
            except BaseException:
                abandoned.set()  # here, before this thread takes the next part
                raise

        found: dict[int, Outcome] = {}
        if len(parts) == 1:  # waking a thread would take longer than all else here
            found.update(encode(parts[0]))
        else:
            pool = ThreadPoolExecutor(self._in_flight, thread_name_prefix="embed")
            try:
                for done in as_completed([pool.submit(encode, rows) for rows in parts]):
                    if not isinstance(done.exception(), Abandoned):  # the part that made it so is still to come
                        found.update(done.result())
            finally:
                abandoned.set()
                pool.shutdown(wait=False, cancel_futures=True)
        return [found[row] for row in range(len(texts))]

    def _isolated(self, texts: list[bytes], abandoned: threading.Event) -> list[Outcome]:
        """One outcome a text: a refused request is halved until the texts at fault stand alone."""
        try:
            request = predict_request(self._model, "serving_default", texts)
            return [*vectors_of(self._endpoint.predict(request, abandoned), len(texts))]
        except Refused as refused:
            if len(texts) == 1:
                return [refused]
            middle = len(texts) // 2
            return self._isolated(texts[:middle], abandoned) + self._isolated(texts[middle:], abandoned)


def predict_request(model: str, signature: str, texts: Sequence[bytes]) -> wire.PredictRequest:
    request = wire.PredictRequest(model_spec=wire.ModelSpec(name=model, signature_name=signature))
    tensor = request.inputs["text"]
    tensor.dtype = wire.STRING
    tensor.tensor_shape.dim.add(size=len(texts))
    tensor.string_val.extend(texts)
    return request


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


def vectors_of(response: wire.PredictResponse, count: int) -> list[tuple[Vectors, str]]:
    """The vector [d] and the fingerprint of each of the `count` texts that were sent."""
    embedding, names = response.outputs["embedding"], response.outputs["model"].string_val
    shape = [dim.size for dim in embedding.tensor_shape.dim]
    flat = _floats(embedding) if embedding.dtype == wire.FLOAT else np.empty(0, np.float32)
    if len(shape) != 2 or shape[0] != count or len(names) != count or flat.size != shape[0] * shape[1]:
        raise ServingUnavailable(
            f"{count} texts were answered with {flat.size} floats of shape {shape} and {len(names)} fingerprints; "
            "serve a model that `python -m model.export` made"
        )
    return list(zip(flat.reshape(shape), (name.decode(errors="replace") for name in names), strict=True))


def _floats(tensor: wire.Tensor) -> Vectors:
    if tensor.tensor_content:
        return np.frombuffer(tensor.tensor_content, "<f4")
    # TensorFlow Serving's own way is the repeated field, a hundred times slower to read number by number than from the
    # end of the message, where it is packed as the last field.
    count = len(tensor.float_val)
    tensor.ClearField("string_val")
    tensor.DiscardUnknownFields()
    packed = tensor.SerializeToString()
    return np.frombuffer(packed, "<f4", count, len(packed) - 4 * count)


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
