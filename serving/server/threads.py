"""How TensorFlow spreads over the cores in a server, and in whatever tries a version out for one."""

from __future__ import annotations

from serving.server.files import CORES


def one_core_a_run() -> None:
    """Every worker thread has a core to itself: runs side by side encode a third more than one run on all cores."""
    from model.runtime import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(CORES)
