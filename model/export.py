"""Exports a model for TensorFlow Serving: `python -m model.export --model DIR --to BASE`."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from common.command import Parser, exit_code
from model.contract import BFLOAT16, FLOAT32, MODEL_NAME, PRECISIONS, TextRecipe
from model.errors import ExportError

EXTRA, FACTS, WARM_UP = "assets.extra", "pause.json", "tf_serving_warmup_requests"
WARM_UP_SHAPES = [(texts, words) for texts in (1, 8, 32) for words in (8, 40, 160)]


def export(model, base: Path, lineage: dict) -> Path:
    """Writes the next version under `base`; it appears by rename, complete and proven, or not at all."""
    import tensorflow as tf

    from model.network import golden
    from model.network.served import ServedModel

    base.mkdir(parents=True, exist_ok=True)
    # Servers look for numbered directories only, so a name with a dot is never loaded.
    partial = Path(tempfile.mkdtemp(prefix=".export-", dir=base))
    try:
        served = ServedModel(model)
        tf.saved_model.save(served, str(partial), signatures=served.signatures)
        expected = model.encoder.encode(golden.TEXTS)
        reloaded = tf.saved_model.load(str(partial)).signatures["serving_default"]
        fault = golden.disagreement(expected, reloaded(text=tf.constant(golden.TEXTS))["embedding"].numpy())
        if fault:
            raise ExportError(f"the exported model does not reproduce the one in memory: {fault}; nothing was exported")
        _write_extra(partial / EXTRA, model, golden.TEXTS, expected, lineage)
        partial.chmod(0o755)  # mkdtemp makes it private, and a server may run as another user
        return take_number(partial, base)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _write_extra(directory: Path, model, texts, vectors, lineage: dict) -> None:
    directory.mkdir()
    _write_warm_up(directory / WARM_UP)
    facts = {
        "contract": asdict(model.contract),
        "precision": model.encoder.precision,
        "golden": [
            {"text": text, "embedding": [float(x) for x in vector]} for text, vector in zip(texts, vectors, strict=True)
        ],
        "lineage": {**lineage, "exported_at": datetime.now(UTC).isoformat(timespec="seconds")},
        "files": sizes(directory.parent),
        "sha256": _digests(directory.parent),
    }
    # Last: with it, whoever copies or serves the version can tell that nothing is missing.
    (directory / FACTS).write_text(json.dumps(facts, ensure_ascii=False) + "\n", encoding="utf-8")


def sizes(directory: Path) -> dict[str, int]:
    """The bytes of every file in a directory, under its name relative to it."""
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): path.stat().st_size for path in files}


def _digests(directory: Path) -> dict[str, str]:
    digests = {}
    for name in sizes(directory):
        with (directory / name).open("rb") as file:
            digests[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return digests


def _write_warm_up(path: Path) -> None:
    """Requests of the sizes and lengths that traffic has, in the file TensorFlow Serving replays after loading."""
    import tensorflow as tf
    from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

    with tf.io.TFRecordWriter(str(path)) as records:
        for texts, words in WARM_UP_SHAPES:
            request = predict_pb2.PredictRequest()
            request.model_spec.name = MODEL_NAME
            request.model_spec.signature_name = "serving_default"
            request.inputs["text"].CopyFrom(tf.make_tensor_proto(["company " * words] * texts))
            log = prediction_log_pb2.PredictionLog(predict_log=prediction_log_pb2.PredictLog(request=request))
            records.write(log.SerializeToString())


def take_number(partial: Path, base: Path) -> Path:
    """Renames a complete directory to the version after all that ever were in `base`. A number with an ending, which a
    version has that was taken out of service, is used up too."""
    with _locked(base):
        while True:
            names = [entry.name.partition(".")[0] for entry in base.iterdir()]
            version = base / str(max((int(name) for name in names if name.isdecimal()), default=0) + 1)
            try:
                os.rename(partial, version)
                return version
            except OSError:
                if not version.exists():
                    raise
                # A program that takes no lock exported at the same moment: take the number after its own.


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Between looking and taking, others may publish, and remove the version whose number was seen to be free."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def lineage_of(spec: str) -> dict:
    """Where the model came from: its run's configuration, data hashes and metrics, where it was trained here, and
    which answers of people it was trained on, where a retraining says so."""
    found = {name: Path(spec) / f"{name}.json" for name in ("config", "metrics", "answers")}
    if not found["metrics"].exists():
        return {"source": spec}
    return {name: json.loads(path.read_text()) for name, path in found.items() if path.exists()}


def main(argv: list[str] | None = None) -> int:
    parser = Parser(
        prog="python -m model.export",
        description="Write a trained model as the next version of a SavedModel that TensorFlow Serving loads as it is.",
        epilog="example:\n  python -m model.export --model build/model --to build/serving/pause",
    )
    parser.add_argument(
        "--model", required=True, metavar="DIR", help="a directory of model.train, or an encoder source"
    )
    parser.add_argument("--to", required=True, metavar="BASE", help="the base path: versions are its numbered folders")
    parser.add_argument("--recipe", help="another text recipe than the model's own")
    parser.add_argument("--max_tokens", type=int, metavar="N", help="cut texts there (default: the model's own)")
    parser.add_argument(
        "--precision",
        choices=PRECISIONS,
        default=FLOAT32,
        help="of matrix products; bfloat16 is faster on some CPUs and slower on others, so both are measured and the "
        "ratio is told; its vectors (cosine 0.9999 to those of float32) have a fingerprint of their own",
    )
    arguments = parser.parse_args(argv)
    chosen = (arguments.recipe, arguments.max_tokens, arguments.precision)
    return exit_code(lambda: _export(arguments.model, Path(arguments.to), *chosen))


def _export(spec: str, base: Path, recipe: str | None, max_tokens: int | None, precision: str) -> None:
    try:
        chosen = TextRecipe(recipe) if recipe else None
    except ValueError as error:
        raise ExportError(str(error)) from error
    import common.runtime  # noqa: F401  (TensorFlow is imported only once the flags are known to be good)
    from model.network.saved import open_model

    opened = open_model(spec, max_tokens)
    opened.recipe = chosen or opened.recipe
    lineage = lineage_of(spec)
    if precision == BFLOAT16:
        from model.evaluate.speed import compare

        opened.encoder.multiply_in_bfloat16()
        speeds = compare(opened.encoder, open_model(spec, max_tokens).encoder)
        lineage["speed"] = speeds.facts()
        print(speeds, file=sys.stderr)
    try:
        print(export(opened, base, lineage))
    except OSError as error:
        raise ExportError(f"--to {base} cannot be written: {error}") from error


if __name__ == "__main__":
    sys.exit(main())
