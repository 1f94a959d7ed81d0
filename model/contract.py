"""What a PAUSE model promises to whoever calls it: light, importable without TensorFlow."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

MODEL_NAME = "pause"
FLOAT32, BFLOAT16 = PRECISIONS = ("float32", "bfloat16")  # of the matrix products within
COMPANY_FIELDS = ("name", "description", "sector", "industry", "country", "website", "tags")
DESCRIPTION_ONLY = "{description}"
INDUSTRY_FIRST = "{industry}. {description}"

# A field owns the words before it and the punctuation that touches it, so that all of them fall out together.
_SEGMENT = re.compile(r"(?P<before>[^{}]*)\{(?P<field>\w+)\}(?P<after>[^\s{}]*)")


@dataclass(frozen=True)
class TextRecipe:
    """How the fields of a company become the text that is encoded, in training, pipeline and search alike."""

    template: str

    def __post_init__(self) -> None:
        unknown = [field for field in self.fields if field not in COMPANY_FIELDS]
        # What no field owns would be dropped in silence: words after the last field, a stray brace.
        if unknown or not self.fields or _SEGMENT.sub("", self.template).strip():
            raise ValueError(
                f"text recipe {self.template!r} is not usable: write company fields in braces, words before them, "
                f"such as {INDUSTRY_FIRST!r}; fields are {', '.join(COMPANY_FIELDS)}"
            )

    @property
    def fields(self) -> list[str]:
        return [match["field"] for match in _SEGMENT.finditer(self.template)]

    def render(self, company: Mapping[str, object]) -> str:
        parts = []
        for match in _SEGMENT.finditer(self.template):
            value = _plain(company.get(match["field"]))
            if value:
                after = match["after"]
                # "Foo Inc." before ". " must not become "Foo Inc.. "
                parts.append(match["before"] + value + (after[1:] if after and value.endswith(after[0]) else after))
        return "".join(parts).strip()


def _plain(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, Iterable):
        return ", ".join(filter(None, (_plain(item) for item in value)))
    return str(value)


@dataclass(frozen=True)
class Contract:
    """Answered by the SavedModel's `contract` signature and kept in its `assets.extra/pause.json`."""

    fingerprint: str
    dimension: int
    max_tokens: int
    text_recipe: str

    @property
    def recipe(self) -> TextRecipe:
        return TextRecipe(self.text_recipe)

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str | bytes) -> Contract:
        known = json.loads(text)
        return cls(**{name: known[name] for name in cls.__dataclass_fields__})


def fingerprint(weights: Iterable[bytes], vocabulary: Iterable[str], text_settings: Mapping[str, object]) -> str:
    """First 16 hex digits of a sha256 over all that decides a vector: weights, vocabulary, and how text is made."""
    digest = hashlib.sha256()
    for blob in weights:
        digest.update(hashlib.sha256(blob).digest())
    digest.update("\n".join(vocabulary).encode())
    digest.update(json.dumps(dict(text_settings), sort_keys=True).encode())
    return digest.hexdigest()[:16]
