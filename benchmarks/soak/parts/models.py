"""Three small models with recipes and widths of their own, exported once.

`python -m benchmarks.soak.parts.models FOLDER`

Their weights are random and seeded: what a soak needs of a model is that texts of one are never taken for another's.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.soak.parts.part import python
from model.contract import Contract
from model.errors import EncoderError
from serving.storage.base import FACTS_FILE

# The encoder and the recipe of each.
MODELS = (
    ("scratch:L1-H32", "{industry}. {description}"),
    ("scratch:L1-H64", "{name}. {description}"),
    ("scratch:L2-H48", "{country}. {sector}. {description}"),
)
MAX_TOKENS = 32
ROWS = 256  # texts encoded at once


def contract_of(version: Path) -> Contract:
    return Contract.from_json(json.dumps(json.loads((version / FACTS_FILE).read_text())["contract"]))


def export_all(folder: Path) -> None:
    import keras

    from benchmarks.soak.traffic import COUNTRIES, INDUSTRIES, SECTORS, WORDS
    from model.contract import TextRecipe
    from model.export import export
    from model.network.encoder import load_encoder
    from model.network.saved import PauseModel

    for number, (encoder, recipe) in enumerate(MODELS):
        keras.utils.set_random_seed(number)
        texts = [" ".join((*WORDS, *SECTORS, *INDUSTRIES, *COUNTRIES))]
        made = PauseModel(load_encoder(encoder, MAX_TOKENS, None, texts), TextRecipe(recipe))
        export(made, folder / str(number), {"source": encoder})


def exported(folder: Path) -> list[Path]:
    """Made in a process of its own, once: TensorFlow is large."""
    versions = [folder / str(number) / "1" for number in range(len(MODELS))]
    if not all(version.exists() for version in versions):
        code = subprocess.run(python("benchmarks.soak.parts.models", str(folder))).returncode
        if code:
            raise EncoderError(f"the small models could not be exported to {folder} (exit code {code})")
    return versions


class Oracle:
    """What each model gives for a text, by the export itself and without any server."""

    def __init__(self, versions: Sequence[Path]):
        import common.runtime  # noqa: F401  (before TensorFlow: it asks which instructions the CPU has)

        self._versions = {contract_of(version).fingerprint: version for version in versions}
        self._loaded: dict[str, object] = {}

    def __call__(self, fingerprint: str, texts: Sequence[str]) -> np.ndarray:
        import tensorflow as tf
        import tensorflow_text  # noqa: F401  (its operations are in the graph)

        if fingerprint not in self._loaded:
            self._loaded[fingerprint] = tf.saved_model.load(str(self._versions[fingerprint]))
        encode = self._loaded[fingerprint].signatures["serving_default"]  # type: ignore[attr-defined]
        parts = [texts[start : start + ROWS] for start in range(0, len(texts), ROWS)]
        return np.concatenate([encode(text=tf.constant(part))["embedding"].numpy() for part in parts])


def main(argv: list[str] | None = None) -> int:
    (folder,) = sys.argv[1:] if argv is None else argv
    import common.runtime  # noqa: F401  (before TensorFlow: it asks which instructions the CPU has)

    export_all(Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
