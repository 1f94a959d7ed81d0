"""One version of the model in memory: complete, proven against its golden vectors, its usual shapes compiled."""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from common.runtime import tensorflow as tf
from model.contract import FLOAT32, Contract
from model.errors import ExportError
from model.export import EXTRA, FACTS, WARM_UP
from model.network import golden
from serving.server.compute.compiled import CompiledVectors
from serving.server.compute.shapes import capacity, next_run, padded_length, run_length
from serving.storage.base import incomplete

importlib.import_module("tensorflow_text")  # registers the tokenizer's ops

SIGNATURE = "serving_default"
TOKENIZED_BYTES = 2**20  # of texts at a time


class LoadedModel:
    """Texts -> token ids -> unit vectors, in the two steps that a batching server takes."""

    def __init__(
        self,
        directory: Path,
        compile: bool = False,
        max_texts: int = 256,
        threads: int = 1,
        like: LoadedModel | None = None,
        check: Callable[[], None] = lambda: None,
    ):
        """`like` is a version whose compiled graphs may do for this one; `check` is called between the steps, and ends
        the load with what it raises."""
        self.contract, precision, golden_texts, golden_vectors = _facts(directory)
        self.max_texts = max_texts
        self.module = _load(directory)
        self.signatures = _signatures(directory)
        self.pad_id = int(self.module.tokens(tf.constant([""]))["pad"])
        # XLA multiplies bfloat16 as float32, and slower than TensorFlow itself multiplies either.
        compile = compile and precision == FLOAT32
        check()
        former = like.vectors if like else None
        self.vectors: CompiledVectors = CompiledVectors(self.module.vectors, compile, self.pad_id + 1, former)
        self._prove(golden_texts, golden_vectors)
        check()
        self._warm_up(directory / EXTRA / WARM_UP, threads, check)

    @property
    def fingerprint(self) -> str:
        return self.contract.fingerprint

    def tokenize(self, texts: Sequence[bytes]) -> list[NDArray[np.int32]]:
        """Token ids of each text, unpadded."""
        token_ids: list[NDArray[np.int32]] = []
        for part in _parts(texts):
            tokens = self.module.tokens(tf.constant(part, tf.string))
            ends = np.cumsum(tokens["lengths"].numpy())
            token_ids += np.split(tokens["ids"].numpy(), ends[:-1])
        return token_ids

    def respond(self, signature: str, texts: Sequence[bytes]) -> dict[str, NDArray[Any]]:
        """The SavedModel's own answer, for signatures that need no batching."""
        outputs = self.module.signatures[signature](text=tf.constant(list(texts), tf.string))
        return {name: tensor.numpy() for name, tensor in outputs.items()}

    def encode(self, texts: Sequence[bytes]) -> NDArray[np.float32]:
        """Vectors [n, d] by the same path that batched requests take."""
        vectors = np.empty((len(texts), self.contract.dimension), np.float32)
        for rows, token_ids in self._runs(texts):
            vectors[rows] = self.vectors(token_ids)[: len(rows)]
        return vectors

    def padded(self, token_ids: Sequence[NDArray[np.int32]], rows: int, length: int) -> NDArray[np.int32]:
        """Token ids [rows, t], t as long as the texts need and `length` at most; the rows beyond the texts repeat the
        first, so that no row is without a token."""
        filled = np.full((rows, run_length(max(map(len, token_ids)), length)), self.pad_id, np.int32)
        for row, ids in enumerate(token_ids):
            filled[row, : len(ids)] = ids
        filled[len(token_ids) :] = filled[0]
        return filled

    def close(self) -> None:
        self.vectors.close()

    def _runs(self, texts: Sequence[bytes]) -> Iterator[tuple[list[int], NDArray[np.int32]]]:
        tokens = self.tokenize(texts)
        by_length: dict[int, list[int]] = {}
        for row, ids in enumerate(tokens):
            by_length.setdefault(padded_length(len(ids), self.contract.max_tokens), []).append(row)
        for length, rows in by_length.items():
            while rows:
                taken, size = next_run(len(rows), capacity(length, self.max_texts))
                yield rows[:taken], self.padded([tokens[row] for row in rows[:taken]], size, length)
                rows = rows[taken:]

    def _prove(self, texts: list[bytes], expected: NDArray[np.float32]) -> None:
        stated = Contract.from_json(self.respond("contract", [b""])["contract"][0])
        if stated != self.contract:
            raise ExportError(f"{EXTRA}/{FACTS} is of another model: {self.contract} where the graph states {stated}")
        for found in (self.respond(SIGNATURE, texts)["embedding"], self.encode(texts)):
            fault = golden.disagreement(expected, found)
            if fault:
                raise ExportError(f"the golden vectors are not reproduced: {fault}")

    def _warm_up(self, path: Path, threads: int, check: Callable[[], None]) -> None:
        """Compiles the shapes of the model's own warm-up requests, and runs each once, before anybody waits for it."""
        try:
            requests = list(_warm_up_texts(path))
        except (tf.errors.OpError, DecodeError) as error:
            raise ExportError(f"its warm-up requests cannot be read: {_first_line(error)}") from error
        shapes = {token_ids.shape for texts in requests for _, token_ids in self._runs(texts)}
        self.vectors.prepare(shapes, threads, check)


def _parts(texts: Sequence[bytes]) -> Iterator[list[bytes]]:
    """Texts in parts of bounded size: until it is cut, a token takes a hundred times the memory of its letters."""
    part: list[bytes] = []
    size = 0
    for text in texts:
        if part and size + len(text) > TOKENIZED_BYTES:
            yield part
            part, size = [], 0
        part.append(text)
        size += len(text)
    if part:
        yield part


def prove(directory: Path) -> None:
    """Raises ExportError unless the version is complete, loads, and reproduces its golden vectors."""
    LoadedModel(directory)


def _facts(directory: Path) -> tuple[Contract, str, list[bytes], NDArray[np.float32]]:
    """The contract, the precision of its matrix products, the golden texts and their vectors [n, d]."""
    missing = incomplete(directory)
    if missing:
        raise ExportError(missing)
    facts = json.loads((directory / EXTRA / FACTS).read_bytes())
    # TensorFlow notices damaged weights by itself, but loads a damaged graph as long as it can be parsed.
    for name, expected in facts.get("sha256", {}).items():
        with (directory / name).open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != expected:
                raise ExportError(f"{name} is damaged: it has another sha256 than when it was exported")
    try:
        texts = [example["text"].encode() for example in facts["golden"]]
        vectors = np.array([example["embedding"] for example in facts["golden"]], np.float32)
        return Contract(**facts["contract"]), facts.get("precision", FLOAT32), texts, vectors
    except (KeyError, TypeError, ValueError) as error:
        raise ExportError(f"{EXTRA}/{FACTS} is not as model.export writes it: {error!r}") from error


def _load(directory: Path) -> Any:
    try:
        module = tf.saved_model.load(str(directory))
        missing = [name for name in ("tokens", "vectors") if not hasattr(module, name)]
    except Exception as error:  # whatever TensorFlow raises for a damaged file, the version is at fault
        raise ExportError(f"it does not load: {_first_line(error)}") from error
    if missing:
        raise ExportError(f"it has no {' and '.join(missing)}: export it with `python -m model.export`")
    return module


def _signatures(directory: Path) -> dict[str, Any]:
    from tensorflow.core.protobuf import saved_model_pb2

    saved = saved_model_pb2.SavedModel.FromString((directory / "saved_model.pb").read_bytes())
    return dict(saved.meta_graphs[0].signature_def)


def _warm_up_texts(path: Path) -> Iterator[list[bytes]]:
    from tensorflow_serving.apis import prediction_log_pb2

    if not path.exists():
        return
    for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
        request = prediction_log_pb2.PredictionLog.FromString(record).predict_log.request
        if request.model_spec.signature_name in ("", SIGNATURE):
            yield list(request.inputs["text"].string_val)


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
