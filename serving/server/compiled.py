"""Vectors by compiled graphs: XLA makes one program a shape, so shapes that traffic asks for often are compiled."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.runtime import tensorflow as tf

ASKED_OFTEN = 16  # runs of one shape; compiling takes as long as some fifty of them
AGREEMENT = 1e-4  # the largest difference of a component between compiled and plain

log = logging.getLogger(__name__)


class CompiledVectors:
    """Padded token ids [n, t] -> unit vectors [n, d]; by plain TensorFlow until the shape is compiled."""

    def __init__(self, plain: Callable[..., Any], enabled: bool, some_token: int):
        self._plain = plain
        self._some_token = some_token
        self._enabled = enabled
        self._compiled = _to_compile(plain) if enabled else plain
        self._ready: set[tuple[int, ...]] = set()
        self._asked: Counter[tuple[int, ...]] = Counter()
        self._lock = threading.Lock()
        self._background = ThreadPoolExecutor(1, thread_name_prefix="compile")

    def __call__(self, token_ids: NDArray[np.int32]) -> NDArray[np.float32]:
        if token_ids.shape in self._ready:
            return self._run(self._compiled, token_ids)
        if self._enabled:
            with self._lock:
                self._asked[token_ids.shape] += 1
                often = self._asked[token_ids.shape] == ASKED_OFTEN
            if often:
                self._background.submit(self._compile, token_ids.shape)
        return self._run(self._plain, token_ids)

    def prepare(self, shapes: Sequence[tuple[int, ...]], threads: int) -> None:
        """Compiles these shapes, or runs them once where nothing is compiled; returns when all are ready."""
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(self._compile if self._enabled else self._run_once, shapes))

    def _run_once(self, shape: tuple[int, ...]) -> None:
        self._run(self._plain, np.full(shape, self._some_token, np.int32))

    def close(self) -> None:
        self._background.shutdown(wait=False, cancel_futures=True)

    def _compile(self, shape: tuple[int, ...]) -> None:
        token_ids = np.full(shape, self._some_token, np.int32)
        try:
            difference = np.abs(self._run(self._compiled, token_ids) - self._run(self._plain, token_ids)).max()
        except tf.errors.OpError as error:
            log.warning("shape %s does not compile and stays plain: %s", shape, str(error).splitlines()[0])
            return
        if not difference <= AGREEMENT:  # so that NaN is no agreement
            log.warning("shape %s differs by %g when compiled and stays plain", shape, difference)
            return
        self._ready.add(shape)

    @staticmethod
    def _run(function: Callable[..., Any], token_ids: NDArray[np.int32]) -> NDArray[np.float32]:
        vectors: NDArray[np.float32] = function(tf.constant(token_ids)).numpy()
        return vectors


def _to_compile(plain: Callable[..., Any]) -> Callable[..., Any]:
    """One graph for all shapes, traced at once: TensorFlow takes the first calls of one version after the other for a
    function that is traced too often, and warns."""
    signature = [tf.TensorSpec([None, None], tf.int32)]
    traced = tf.function(lambda token_ids: plain(token_ids), input_signature=signature, jit_compile=True)
    concrete: Callable[..., Any] = traced.get_concrete_function()
    return concrete
