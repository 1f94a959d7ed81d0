"""Our own encoders without a server, as contestants.

`python -m benchmarks.peers.in_process encoder|compiled MODEL ...`
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np

from benchmarks.peers.contestant import Encode, read_texts, take_part


def encoder(spec: str, max_tokens: int) -> Encode:
    """As `model.evaluate` encodes: sorted by length, batches by tokens, TensorFlow's own threads."""
    import common.runtime  # noqa: F401
    from model.network.saved import open_model

    opened = open_model(spec, max_tokens)
    return lambda texts, _: opened.encoder.encode(texts)


def compiled(version: str, _: int) -> Encode:
    """The exported model as the server has it, run by run, each on all cores."""
    from serving.server.models.loaded import LoadedModel

    loaded = LoadedModel(Path(version), compile=True, threads=os.cpu_count() or 1)

    def encode(texts: list[str], _: int) -> np.ndarray:
        return loaded.encode([text.encode() for text in texts])

    return encode


def main(name: str, spec: str, max_tokens: str, texts: str, vectors: str) -> None:
    load = {"encoder": encoder, "compiled": compiled}[name]
    take_part(lambda: load(spec, int(max_tokens)), read_texts(texts), Path(vectors))


if __name__ == "__main__":
    main(*sys.argv[1:])
