"""Vectors of a frozen encoder, kept on disk: the next run on the same texts starts at once."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np


def cached(
    directory: str | None, fingerprint: str, texts: Sequence[str], encode: Callable[[], np.ndarray]
) -> np.ndarray:
    """`encode()` or what it gave before for these texts and this model; without a directory, always `encode()`."""
    if directory is None:
        return encode()
    digest = hashlib.sha256(fingerprint.encode())
    for text in texts:
        digest.update(hashlib.sha256(text.encode("utf-8", "replace")).digest())
    path = Path(directory) / f"{digest.hexdigest()[:32]}.npy"
    if path.exists():
        return np.load(path)
    vectors = encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.stem}-{os.getpid()}.npy")
    np.save(partial, vectors)
    os.replace(partial, path)
    return vectors
