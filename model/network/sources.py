"""Where an encoder's body comes from: scratch, Keras Hub, a Hugging Face directory, or TF Hub."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import keras
import tensorflow as tf

from model.errors import EncoderError
from model.network.tokenizer import learn_vocabulary

ACCEPTED = (
    "scratch:L2-H128, package:NAME, a Keras Hub preset or directory, a Hugging Face BERT directory, "
    "a TF Hub handle or a local copy of one"
)
PAPER_TOKENS = 128
SENTENCE_CONFIG = "sentence_bert_config.json"  # where sentence encoders state how long a text they were trained on


@dataclass(frozen=True)
class Source:
    """A pretrained (or fresh) body with all that is needed to feed it and to save it again."""

    body: keras.layers.Layer  # {"token_ids", "segment_ids", "padding_mask"}, each int32 [B, T] -> [B, T, H]
    vocabulary: tuple[str, ...]
    lower_case: bool
    max_tokens: int  # what its makers trained it with
    position_limit: int
    save: Callable[[Path], None]


def load_source(spec: str, texts: Sequence[str] = ()) -> Source:
    """Loads `spec`; `texts` teach a scratch encoder its vocabulary."""
    if spec.startswith("scratch:"):
        return _scratch(spec, texts)
    if spec.startswith("package:"):
        return _directory(_package_directory(spec))
    if spec.startswith(("http://", "https://")):
        return _tf_hub(spec)
    path = Path(spec).expanduser()
    if path.is_dir():
        return _directory(path)
    if "/" in spec and "://" not in spec:
        raise EncoderError(f"encoder {spec!r}: no such directory; accepted: {ACCEPTED}")
    return _keras_hub(spec)


def _scratch(spec: str, texts: Sequence[str]) -> Source:
    import keras_hub

    match = re.fullmatch(r"scratch:L(\d+)-H(\d+)", spec)
    layers, hidden = (int(number) for number in match.groups()) if match else (0, 0)
    if layers < 1 or hidden < 1 or hidden % 2:
        raise EncoderError(f"encoder {spec!r}: write scratch:L<layers>-H<even hidden size>, such as scratch:L2-H128")
    if not texts:
        raise EncoderError(f"encoder {spec!r} has no texts to learn its vocabulary from")
    vocabulary = learn_vocabulary(texts)
    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=len(vocabulary),
        num_layers=layers,
        num_heads=max(1, hidden // 64) if hidden % 64 == 0 else 2,
        hidden_dim=hidden,
        intermediate_dim=4 * hidden,
    )
    return _from_backbone(backbone, vocabulary, lower_case=True, max_tokens=PAPER_TOKENS)


def _package_directory(spec: str) -> Path:
    """The model directory inside an installed package, found without importing the package."""
    name = spec.removeprefix("package:")
    found = importlib.util.find_spec(name) if name.isidentifier() else None
    if not found or not found.submodule_search_locations:
        raise EncoderError(
            f"encoder {spec!r}: no package of that name is installed; `make setup` installs the base encoder"
        )
    configs = sorted(Path(found.submodule_search_locations[0]).glob("**/model.safetensors"))
    if not configs:
        raise EncoderError(f"encoder {spec!r}: the package holds no model.safetensors")
    return configs[0].parent


def _directory(path: Path) -> Source:
    if (path / "saved_model.pb").exists():
        return _tf_hub(str(path))
    try:
        config = json.loads((path / "config.json").read_text())
    except (OSError, ValueError) as error:
        raise EncoderError(
            f"encoder {path}: no readable config.json or saved_model.pb; accepted: {ACCEPTED}"
        ) from error
    if "model_type" in config:
        return _hugging_face(path, config)
    if (path / "model.json").exists() and (path / "encoder").is_dir():
        raise EncoderError(f"encoder {path} is a trained model; to train it further, name {path / 'encoder'}")
    if not (path / "assets" / "tokenizer" / "vocabulary.txt").exists():
        raise EncoderError(
            f"encoder {path}: no vocabulary (assets/tokenizer/vocabulary.txt) in this Keras Hub directory"
        )
    return _keras_hub(str(path))


def _hugging_face(path: Path, config: dict) -> Source:
    import keras_hub

    if config["model_type"] != "bert":
        raise EncoderError(
            f"encoder {path}: model type {config['model_type']!r}; of Hugging Face models BERT is accepted"
        )
    for name, what in (("vocab.txt", "vocabulary"), ("model.safetensors", "weights")):
        if not (path / name).exists():
            raise EncoderError(f"encoder {path}: no {what} ({name}) in this Hugging Face directory")
    tokenizer = _json(path / "tokenizer_config.json")
    return _from_backbone(
        _loaded(str(path), lambda: keras_hub.models.Backbone.from_preset(str(path))),
        _vocabulary((path / "vocab.txt").read_text(encoding="utf-8")),
        lower_case=tokenizer.get("do_lower_case", True),
        max_tokens=_max_tokens(path),
    )


def _keras_hub(preset: str) -> Source:
    import keras_hub

    tokenizer = _loaded(preset, lambda: keras_hub.models.Tokenizer.from_preset(preset))
    if not isinstance(tokenizer, keras_hub.tokenizers.WordPieceTokenizer):
        raise EncoderError(f"encoder {preset!r} has a {type(tokenizer).__name__}; a WordPiece tokenizer is needed")
    backbone = _loaded(preset, lambda: keras_hub.models.Backbone.from_preset(preset))
    return _from_backbone(backbone, tokenizer.get_vocabulary(), tokenizer.lowercase, _max_tokens(Path(preset)))


def _from_backbone(backbone: keras.Model, vocabulary: Sequence[str], lower_case: bool, max_tokens: int) -> Source:
    import keras_hub

    limit = getattr(backbone, "max_sequence_length", PAPER_TOKENS)
    max_tokens = min(max_tokens, limit)

    def save(directory: Path) -> None:
        backbone.save_to_preset(str(directory))
        tokenizer = keras_hub.models.BertTokenizer(vocabulary=list(vocabulary), lowercase=lower_case)
        tokenizer.save_to_preset(str(directory))
        (directory / SENTENCE_CONFIG).write_text(json.dumps({"max_seq_length": max_tokens}) + "\n")

    output = backbone.output
    tokens = output["sequence_output"] if isinstance(output, dict) else output
    # DistilBERT knows no segments; it is handed them all the same, as every other body is.
    segments = keras.Input([None], dtype="int32", name="segment_ids")
    # A model of its own leaves out the layers that mean pooling never uses, so they get no optimizer state.
    body = keras.Model({"segment_ids": segments, **backbone.input}, tokens, name="body")
    return Source(body, tuple(vocabulary), lower_case, max_tokens, limit, save)


class HubBody(keras.layers.Layer):
    """A TF Hub BERT, its TensorFlow variables adopted so that Keras can train them."""

    def __init__(self, restored):
        super().__init__(name="body")
        self.restored = restored
        self.adopted = [keras.Variable(variable) for variable in restored.trainable_variables]

    def call(self, inputs, training=False):
        outputs = self.restored(
            {
                "input_word_ids": inputs["token_ids"],
                "input_mask": inputs["padding_mask"],
                "input_type_ids": inputs["segment_ids"],
            },
            training=bool(training),
        )
        return outputs["sequence_output"]


def _tf_hub(handle: str) -> Source:
    restored = _loaded(handle, lambda: tf.saved_model.load(_local_copy(handle)))
    try:
        vocabulary = _vocabulary(tf.io.gfile.GFile(restored.vocab_file.asset_path.numpy().decode()).read())
        lower_case = bool(restored.do_lower_case.numpy())
        positions = [v.shape[0] for v in restored.variables if "position_embedding" in v.name]
        body = HubBody(restored)
    except AttributeError as error:
        raise EncoderError(
            f"encoder {handle!r}: no {error.name} in this TF Hub model; a BERT encoder has vocab_file "
            "(its vocabulary), do_lower_case, variables and trainable_variables"
        ) from error
    limit = positions[0] if positions else PAPER_TOKENS
    return Source(
        body,
        tuple(vocabulary),
        lower_case,
        min(PAPER_TOKENS, limit),
        limit,
        lambda directory: tf.saved_model.save(restored, str(directory)),
    )


def _local_copy(handle: str) -> str:
    if Path(handle).is_dir():
        return handle
    import tensorflow_hub as hub

    return hub.resolve(handle)


def _vocabulary(content: str) -> list[str]:
    """One token a line; only a line feed ends a line, whatever else Unicode calls one."""
    return content.removesuffix("\n").split("\n")


def _loaded(spec: str, load: Callable):
    """Loaders of three libraries fail in as many ways; a person gets the one line that says what to do."""
    try:
        return load()
    except Exception as error:
        first_line = str(error).strip().split("\n")[0][:200]
        raise EncoderError(f"encoder {spec!r} cannot be loaded ({first_line}); accepted: {ACCEPTED}") from error


def _max_tokens(directory: Path) -> int:
    return _json(directory / SENTENCE_CONFIG).get("max_seq_length", PAPER_TOKENS)


def _json(path: Path) -> dict:
    return json.loads(path.read_text()) if path.exists() else {}
