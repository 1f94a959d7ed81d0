"""A version's graph as XLA compiles it, apart from its weights: versions of one architecture share what is compiled."""

from __future__ import annotations

import copy
import re
import uuid
from collections.abc import Callable
from typing import Any

from common.runtime import tensorflow as tf

TOKEN_IDS = tf.TensorSpec([None, None], tf.int32)


class Program:
    """XLA keeps what it made of a shape under the name of this function, whatever weights it is run with."""

    def __init__(self, concrete: Any):
        self.graph = _anonymous(concrete)
        # Stand-ins without content: else the first version's weights would stay for as long as the program does.
        weights = [_stand_in(tensor, concrete) for tensor in concrete.captured_inputs]
        importer = _importer(concrete, weights)
        # Traced at once: TensorFlow takes the first calls of one version after the other for a function that is traced
        # too often, and warns.
        self._compiled = tf.function(importer, [TOKEN_IDS], autograph=False, jit_compile=True).get_concrete_function()
        places = {id(weight): place for place, weight in enumerate(weights)}
        self._order = [places[id(tensor)] for tensor in self._compiled.captured_inputs]

    def with_weights(self, concrete: Any) -> Callable[..., Any]:
        """Token ids [n, t] -> vectors [n, d] by the weights of a graph that equals this one."""
        bound = copy.copy(self._compiled)
        bound.set_external_captures([concrete.captured_inputs[place] for place in self._order])
        function: Callable[..., Any] = bound
        return function


def compilable(plain: Callable[..., Any], like: Program | None) -> tuple[Program, Callable[..., Any]]:
    """The program of a graph, which is `like` where that is of an equal one, and the function with its own weights."""
    concrete = _concrete(plain)
    program = like if like is not None and like.graph == _anonymous(concrete) else Program(concrete)
    return program, program.with_weights(concrete)


def _concrete(plain: Callable[..., Any]) -> Any:
    """A function of a SavedModel has its one graph already; asked for it, TensorFlow would make one that calls it."""
    restored = getattr(plain, "concrete_functions", None)
    return restored[0] if restored else tf.function(plain, [TOKEN_IDS], autograph=False).get_concrete_function()


def _stand_in(tensor: Any, concrete: Any) -> Any:
    for variable in concrete.variables:
        if variable.handle is tensor:
            return tf.raw_ops.VarHandleOp(dtype=variable.dtype, shape=variable.shape, shared_name=uuid.uuid4().hex)
    return tensor


def _importer(concrete: Any, weights: list[Any]) -> Callable[..., Any]:
    definition = concrete.graph.as_graph_def()
    placeholders = {tensor.op.name for tensor in concrete.inputs}
    kept = [node for node in definition.node if node.name not in placeholders]
    del definition.node[:]
    definition.node.extend(kept)
    names, [output] = [tensor.name for tensor in concrete.inputs], concrete.outputs

    def run(token_ids: Any) -> Any:
        capture = tf.compat.v1.get_default_graph().capture
        given = dict(zip(names, [token_ids, *map(capture, weights)], strict=True))
        [vectors] = tf.graph_util.import_graph_def(definition, given, [output.name], name="")
        return vectors

    return run


def _anonymous(concrete: Any) -> tuple[bytes, list[Any]]:
    """Equal for two versions that compute the same from weights of the same shapes, whatever their layers are called;
    and of no other, where it has captured something else than weights."""
    definition = concrete.graph.as_graph_def()
    places = {node.name: f"node{number}" for number, node in enumerate(definition.node)}
    for node in definition.node:
        node.name = places[node.name]
        node.input[:] = [re.sub(r"[^:^]+", lambda name: places[name[0]], given, count=1) for given in node.input]
        node.ClearField("experimental_debug_info")
        node.attr.pop("_user_specified_name", None)
    shapes = {id(variable.handle): (variable.dtype, variable.shape) for variable in concrete.variables}
    return definition.SerializeToString(deterministic=True), [
        shapes.get(id(t), id(t)) for t in concrete.captured_inputs
    ]
