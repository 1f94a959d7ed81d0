"""TensorFlow's thread pools, for the server and for the process that tries a version out."""

from __future__ import annotations

from serving.server.config.files import CORES


def one_core_a_run() -> None:
    """Every worker thread has a core to itself: runs side by side encode a third more than one run on all cores."""
    from common.runtime import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(CORES)
