"""A training run on disk: configuration, loss curve, the state to go on from after a kill, final metrics."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

from model.errors import RunError
from model.training.config import TrainConfig

CONFIG, HISTORY, METRICS = "config.json", "history.jsonl", "metrics.json"
STATE, BEST = "state.safetensors", "best.safetensors"


class Run:
    """Writes are atomic (a file appears by rename), so a kill at any moment leaves the last whole state."""

    def __init__(self, config: TrainConfig, hashes: dict[str, str]):
        self.directory = Path(config.out)
        self._identity = {"config": config.decisive(), "data": hashes}
        self._refuse_strangers()

    def _refuse_strangers(self) -> None:
        if self.directory.exists() and not self.directory.is_dir():
            raise RunError(f"--out {self.directory} is a file; name a directory")
        if not self.directory.exists() or not any(self.directory.iterdir()):
            return
        stored = _read_json(self.directory / CONFIG)
        if stored is None:
            raise RunError(f"--out {self.directory} holds something else than a training run; name an empty directory")
        if stored != self._identity:
            before, now = ({**side["config"], **side["data"]} for side in (stored, self._identity))
            changed = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
            raise RunError(
                f"--out {self.directory} holds another run (it differs in {', '.join(changed)}); "
                "name another directory, or remove this one"
            )

    @property
    def finished(self) -> bool:
        return (self.directory / METRICS).exists()

    def start(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        _write_json(self.directory / CONFIG, self._identity)

    def save_state(self, arrays: list[np.ndarray], progress: dict) -> None:
        """`progress` is plain JSON: step, best score and the like."""
        _save(self.directory / STATE, arrays, progress)

    def load_state(self) -> tuple[list[np.ndarray], dict] | None:
        return _load(self.directory / STATE)

    def save_best(self, arrays: list[np.ndarray]) -> None:
        _save(self.directory / BEST, arrays, {})

    def load_best(self) -> list[np.ndarray] | None:
        found = _load(self.directory / BEST)
        return found[0] if found else None

    def history(self, up_to: int):
        """The loss curve, opened for appending after step `up_to`; what a killed run wrote beyond it is dropped."""
        path = self.directory / HISTORY
        kept = [line for line in _whole_lines(path) if json.loads(line)["step"] <= up_to]
        _write(path, "".join(kept))
        return path.open("a", buffering=1)

    def finish(self, metrics: dict) -> None:
        _write_json(self.directory / METRICS, metrics)
        for name in (STATE, BEST):
            (self.directory / name).unlink(missing_ok=True)

    def metrics(self) -> dict:
        return _read_json(self.directory / METRICS) or {}


def _whole_lines(path: Path) -> list[str]:
    if not path.exists():
        return []
    return [line for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


def _save(path: Path, arrays: list[np.ndarray], progress: dict) -> None:
    temporary = path.with_suffix(".partial")
    named = {f"{position:05d}": np.asarray(array, order="C") for position, array in enumerate(arrays)}
    save_file(named, temporary, metadata={"progress": json.dumps(progress)})
    os.replace(temporary, path)


def _load(path: Path) -> tuple[list[np.ndarray], dict] | None:
    if not path.exists():
        return None
    with safe_open(path, framework="numpy") as stored:
        arrays = [stored.get_tensor(name) for name in sorted(stored.keys())]
        return arrays, json.loads(stored.metadata()["progress"])


def _read_json(path: Path) -> dict | None:
    return json.loads(path.read_text()) if path.exists() else None


def _write_json(path: Path, content: dict) -> None:
    _write(path, json.dumps(content, indent=2) + "\n")


def _write(path: Path, text: str) -> None:
    temporary = path.with_suffix(".partial")
    temporary.write_text(text)
    os.replace(temporary, path)
