"""Classify, Regress and MultiInference: what TensorFlow Serving answers for a model that has no such signature.

In its order and its words. There is nothing to run behind the checks: the models served here encode texts, and their
signatures take `text`, never the serialized examples under `inputs` that these methods feed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import grpc
from google.protobuf import text_format
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow_serving.apis import inference_pb2, model_pb2

from serving.server.api.predict import Predictor, signatures_of, wanted
from serving.server.api.status import Failure, refuse
from serving.server.models.loaded import SIGNATURE

Signatures = Mapping[str, meta_graph_pb2.SignatureDef]
INPUTS = "inputs"


@dataclass(frozen=True)
class Method:
    """One kind of inference on examples, and the signatures that it can be run with."""

    name: str
    kind: str  # in messages
    outputs: tuple[str, ...]
    most_outputs: int

    @property
    def wrong_outputs(self) -> str:
        return "Expected one output Tensor." if self.most_outputs == 1 else "Expected one or two output Tensors, found "


CLASSIFY = Method("tensorflow/serving/classify", "classification", ("classes", "scores"), 2)
REGRESS = Method("tensorflow/serving/regress", "regression", ("outputs",), 1)


class ExampleInference:
    """`check_method_name` as --enable_signature_method_name_check has it: a signature must be meant for its method."""

    def __init__(self, predictor: Predictor, check_method_name: bool):
        self._predictor, self._check_method_name = predictor, check_method_name

    def respond(self, request: Any, method: Method) -> NoReturn:
        """Of a ClassificationRequest or a RegressionRequest."""
        wanted(request)
        self.respond_spec(request.model_spec, method)

    def respond_spec(self, spec: model_pb2.ModelSpec, method: Method) -> NoReturn:
        signatures, name = self._signatures(spec), spec.signature_name or SIGNATURE
        if name not in signatures:
            refuse(f"No signature was found with the name: {name}")
        self._check(signatures[name], method)
        _not_here(method)

    def respond_all(self, request: inference_pb2.MultiInferenceRequest) -> NoReturn:
        """All tasks are of the model that the first names."""
        spec = request.tasks[0].model_spec if request.tasks else model_pb2.ModelSpec()
        signatures = self._signatures(spec)
        seen: set[str] = set()
        for task in request.tasks:
            self._check_task(task, spec.name, signatures, seen)
        _not_here(CLASSIFY)

    def _signatures(self, spec: model_pb2.ModelSpec) -> Signatures:
        return dict(signatures_of(self._predictor, spec)[1].signature_def)

    def _check_task(
        self, task: inference_pb2.InferenceTask, model_name: str, signatures: Signatures, seen: set[str]
    ) -> None:
        if not task.model_spec.name:
            refuse("Found ModelSpec with an empty model name.")
        if task.model_spec.name != model_name:
            refuse("All ModelSpecs in a MultiInferenceRequest must access the same model name.")
        name = task.model_spec.signature_name or SIGNATURE
        if name in seen:
            refuse(f"Duplicate evaluation of signature: {name}")
        seen.add(name)
        if name not in signatures:
            refuse(f"Requested signature not found in model graph: {name}")
        methods = {method.name: method for method in (CLASSIFY, REGRESS)}
        if task.method_name not in methods:
            unsupported = f"Unsupported signature method_name: {task.method_name}"
            raise Failure(grpc.StatusCode.UNIMPLEMENTED, unsupported)
        self._check(signatures[name], methods[task.method_name])

    def _check(self, signature: meta_graph_pb2.SignatureDef, method: Method) -> None:
        if self._check_method_name and signature.method_name != method.name:
            expected = f"Expected {method.kind} signature method_name to be {method.name}"
            refuse(f"{expected}. Was: {signature.method_name}")
        if len(signature.inputs) != 1:
            refuse("Expected one input Tensor.")
        if not 1 <= len(signature.outputs) <= method.most_outputs:
            refuse(method.wrong_outputs + (str(len(signature.outputs)) if method.most_outputs > 1 else ""))
        if INPUTS not in signature.inputs:
            _unfit(f"No {method.kind} inputs found in SignatureDef: ", signature)
        if not set(method.outputs) & set(signature.outputs):
            _unfit(f"No {method.kind} outputs found in SignatureDef: ", signature)


def _unfit(reason: str, signature: meta_graph_pb2.SignatureDef) -> NoReturn:
    written = text_format.MessageToString(signature)
    raise Failure(grpc.StatusCode.FAILED_PRECONDITION, reason + written)


def _not_here(method: Method) -> NoReturn:
    raise Failure(grpc.StatusCode.UNIMPLEMENTED, f"this server predicts only: there is no {method.kind} here")
