"""The jobs that `python -m benchmarks encode` compares: the pipeline into either index, and Beam's MLTransform."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.targets.cluster import Cluster
from benchmarks.targets.job import Run, run
from index.base import Spec
from model.training.config import MAX_TOKENS

# Of texts that MLTransform encodes at once: left to Beam, or as many as ours looks up and writes at once, which lets it
# sort by length within as many.
OWN_CHOICE, LARGE_BATCH = 0, 512


@dataclass(frozen=True)
class Input:
    """Companies, and the file that holds them as JSON lines."""

    file: Path
    companies: Sequence[dict]

    @classmethod
    def write(cls, file: Path, companies: Sequence[dict]) -> Input:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(json.dumps(company) + "\n" for company in companies), encoding="utf-8")
        return cls(file, companies)

    def __len__(self) -> int:
        return len(self.companies)


def quarter(companies: Sequence[dict]) -> list[dict]:
    """Every fourth by length: a fourth of the work too."""
    by_length = sorted(companies, key=lambda company: (len(company["description"]), company["id"]))
    return by_length[1::4] or by_length


class Pipeline:
    """`python -m pipelines.encode` into a new index, the same once more, and a quarter of it into another new one."""

    def __init__(
        self,
        serving: str,
        whole: Input,
        quarter: Input,
        new_index: Callable[[], AbstractContextManager[str]],
        folder: Path,
    ):
        self._serving, self._whole, self._quarter = serving, whole, quarter
        self._new_index, self._folder = new_index, folder
        self.first, self.again, self.quarters = list[Run](), list[Run](), list[Run]()

    def __call__(self) -> float:
        """Seconds of the first run."""
        every = f"{len(self._whole):,}"
        with self._new_index() as index:
            self.first.append(self._run(self._whole, index, f"{every} indexed; {every} encoded"))
            self.again.append(self._run(self._whole, index, f"{every} unchanged; nothing encoded"))
        with self._new_index() as index:
            self.quarters.append(self._run(self._quarter, index, f"{len(self._quarter):,} indexed"))
        return self.first[-1].seconds

    def _run(self, given: Input, index: str, expected: str) -> Run:
        command = [sys.executable, "-m", "pipelines.encode", "--runner=DirectRunner", "--input", str(given.file)]
        command += ["--serving", self._serving, "--index", index, "--dead_letters", str(self._folder / "dead_letters")]
        return run(command, self._folder / "pipeline.log", expected)


class MLTransform:
    """In the peers' environment, into an index of the same mapping; words for text search are not made for it."""

    def __init__(self, python: str, model: Path, cluster: Cluster, spec: Spec, folder: Path):
        self._command = [python, "-m", "benchmarks.peers.ml_transform"]
        self._model, self._cluster, self._spec, self._folder = model, cluster, spec, folder

    def __call__(self, given: Input, batch_size: int, look: Callable[[str], object] = lambda index: None) -> float:
        """Seconds; `look` is called with the index before that goes."""
        index = "ml-transform"
        with self._cluster.new(index):
            self._cluster.create(index, self._spec)
            words = [str(given.file), self._cluster.address, index, str(self._model), str(MAX_TOKENS), str(batch_size)]
            seconds = run([*self._command, *words], self._folder / f"{index}.log", f"{len(given):,} indexed").seconds
            look(index)
        return seconds


@contextmanager
def new_directory(path: Path) -> Iterator[str]:
    """For an embedded index: not there yet, and gone afterwards."""
    shutil.rmtree(path, ignore_errors=True)
    yield str(path)
    shutil.rmtree(path, ignore_errors=True)
