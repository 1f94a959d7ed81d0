"""Vectors by compiled graphs: XLA makes one program a shape, so shapes that traffic asks for often are compiled."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.runtime import tensorflow as tf
from serving.server.compute.program import Program, compilable

ASKED_OFTEN = 16  # runs of one shape; compiling takes as long as some fifty of them
AGREEMENT = 1e-4  # the largest difference of a component between compiled and plain

log = logging.getLogger(__name__)


class CompiledVectors:
    """Padded token ids [n, t] -> unit vectors [n, d]; by plain TensorFlow until the shape is compiled."""

    def __init__(self, plain: Callable[..., Any], enabled: bool, some_token: int, like: CompiledVectors | None = None):
        """`like` are those of another version: where the graph is the same, what they have compiled is used."""
        self._plain = plain
        self._some_token = some_token
        self._enabled = enabled
        self.program: Program | None = None
        self._compiled = plain
        self._inherited: frozenset[tuple[int, ...]] = frozenset()
        if enabled:
            self.program, self._compiled = compilable(plain, like.program if like else None)
            if like and self.program is like.program:
                self._inherited = frozenset(like.ready)
        self.ready: set[tuple[int, ...]] = set()
        self._asked: Counter[tuple[int, ...]] = Counter()
        self._lock = threading.Lock()
        self._background = ThreadPoolExecutor(1, thread_name_prefix="compile")

    def __call__(self, token_ids: NDArray[np.int32]) -> NDArray[np.float32]:
        if token_ids.shape in self.ready:
            return self._run(self._compiled, token_ids)
        if self._enabled:
            with self._lock:
                self._asked[token_ids.shape] += 1
                often = self._asked[token_ids.shape] == ASKED_OFTEN
            if often:
                self._background.submit(self._compile, token_ids.shape)
        return self._run(self._plain, token_ids)

    def prepare(
        self, shapes: Iterable[tuple[int, ...]], threads: int, check: Callable[[], None] = lambda: None
    ) -> None:
        """Compiles these shapes and those inherited, or runs them once where nothing is compiled; returns when all are
        ready. Whatever `check` raises before one of them ends it."""

        def one(shape: tuple[int, ...]) -> None:
            check()
            if self._enabled:
                self._compile(shape)
            else:
                self._run(self._plain, np.full(shape, self._some_token, np.int32))

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(one, sorted(self._inherited.union(shapes))))

    def settle(self, seconds: float) -> None:
        """Waits until every shape that was asked for often so far is compiled, or has failed to."""
        self._background.submit(lambda: None).result(seconds)

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
        self.ready.add(shape)

    @staticmethod
    def _run(function: Callable[..., Any], token_ids: NDArray[np.int32]) -> NDArray[np.float32]:
        vectors: NDArray[np.float32] = function(tf.constant(token_ids)).numpy()
        return vectors
