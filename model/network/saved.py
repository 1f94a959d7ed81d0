"""A trained model on disk: written once at the end of training, opened by evaluation and export."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from model.contract import DESCRIPTION_ONLY, Contract, TextRecipe
from model.errors import EncoderError
from model.network.encoder import Encoder, load_encoder
from model.network.pair_head import PairHead
from model.training.run import CONFIG

SETTINGS, WEIGHTS, BODY = "model.json", "head.safetensors", "encoder"


@dataclass
class PauseModel:
    """An encoder with, where it was trained, the head over its classes."""

    encoder: Encoder
    recipe: TextRecipe
    head: PairHead | None = None
    names: tuple[str, ...] = ()  # of the head's classes

    @property
    def contract(self) -> Contract:
        return Contract(
            fingerprint=self.encoder.fingerprint(self.recipe.template),
            dimension=self.encoder.dimension,
            max_tokens=self.encoder.tokenizer.max_tokens,
            text_recipe=self.recipe.template,
        )


def save_model(model: PauseModel, directory: Path) -> None:
    """`directory/encoder` is itself an encoder source: it can be trained further or opened by Keras Hub."""
    directory.mkdir(parents=True, exist_ok=True)
    model.encoder.source.save(directory / BODY)
    save_file(_extra_weights(model), directory / WEIGHTS)
    settings = {
        "max_tokens": model.encoder.tokenizer.max_tokens,
        "projection": model.encoder.dimension if model.encoder.projection else None,
        "text_recipe": model.recipe.template,
        "labels": list(model.names),
    }
    (directory / SETTINGS).write_text(json.dumps(settings, indent=2) + "\n")


def open_model(spec: str, max_tokens: int | None = None) -> PauseModel:
    """Opens a directory that `model.train` wrote, or any encoder source as it is, without a head."""
    directory = Path(spec)
    if not (directory / SETTINGS).exists():
        if (directory / CONFIG).exists() and "data" in json.loads((directory / CONFIG).read_text()):
            raise EncoderError(f"model {spec!r}: its training has not ended; run the same model.train command again")
        return PauseModel(load_encoder(spec, max_tokens), TextRecipe(DESCRIPTION_ONLY))
    settings = json.loads((directory / SETTINGS).read_text())
    encoder = load_encoder(str(directory / BODY), max_tokens or settings["max_tokens"], settings["projection"])
    names = tuple(settings["labels"])
    head = PairHead(encoder.dimension, len(names)) if names else None
    model = PauseModel(encoder, TextRecipe(settings["text_recipe"]), head, names)
    stored = load_file(directory / WEIGHTS)
    for name, variable in _extra_variables(model).items():
        variable.assign(stored[name])
    return model


def _extra_variables(model: PauseModel) -> dict:
    """What the body's own format does not hold: projection and head."""
    variables = list(model.encoder.projection.trainable_variables) if model.encoder.projection else []
    variables += model.head.trainable_variables if model.head else []
    return {f"{position}:{variable.path}": variable for position, variable in enumerate(variables)}


def _extra_weights(model: PauseModel) -> dict[str, np.ndarray]:
    return {name: np.ascontiguousarray(variable.numpy()) for name, variable in _extra_variables(model).items()}
