"""The result of an evaluation, as JSON and as a table; the folder that its data lies in."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from model.errors import DataError


@dataclass(frozen=True)
class Result:
    """What one evaluation of one model came to."""

    task: str
    model: str
    fingerprint: str
    scores: dict[str, float]
    average: float | None  # None where the scores are not marks of one kind
    settings: dict = field(default_factory=dict)
    details: dict = field(default_factory=dict)  # "std" of a score, counts, what was skipped

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2, ensure_ascii=False)

    def to_text(self, measure: str, decimals: int) -> str:
        """The paper's way: one row of scores under the names of the data sets, then what else is worth knowing."""
        std = self.details.get("std", {})
        cells = {
            name: f"{value:.{decimals}f}" + (f" ± {std[name]:.{decimals}f}" if name in std else "")
            for name, value in self.scores.items()
        }
        if self.average is not None and len(self.scores) > 1:
            cells["average"] = f"{self.average:.{decimals}f}"
        widths = [max(len(name), len(cell)) for name, cell in cells.items()]
        rows = [
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            for row in (cells.keys(), cells.values())
        ]
        notes = [f"{name}: {_plain(value)}" for name, value in self.details.items() if name != "std"]
        head = f"{self.task} of {self.model} (fingerprint {self.fingerprint}), {measure}"
        return "\n".join([head, "", rows[0], "-" * len(rows[0]), rows[1], *([""] if notes else []), *notes])


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {item}" for name, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value)


def data_folder(data: Path, name: str) -> Path:
    """`data/name`, or `data` itself where somebody names the inner folder."""
    if not data.is_dir():
        raise DataError(f"--data {data}: no such directory; it must hold the folder {name}/")
    return data / name if (data / name).is_dir() else data
