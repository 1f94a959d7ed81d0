"""Where runs of the pipeline meet in tests: an endpoint, an index and a folder of dead letters."""

import json
import subprocess
import sys
from pathlib import Path

from index.open import open_index
from pipelines import options, pipeline

ROOT = Path(__file__).parents[1]


class Place:
    def __init__(self, directory: Path, address: str, index: str | None = None):
        directory.mkdir(parents=True, exist_ok=True)
        self.directory, self.letters = directory, directory / "letters"
        self.index_url = index or str(directory / "index")
        self.flags = ["--serving", address, "--index", self.index_url, "--dead_letters", str(self.letters)]

    def file(self, *records, name="in.jsonl") -> Path:
        lines = [record if isinstance(record, bytes) else json.dumps(record).encode() for record in records]
        path = self.directory / name
        path.write_bytes(b"\n".join(lines))
        return path

    def run(self, source: Path | str, *flags: str, kind="--input") -> dict[str, int]:
        """In this process; what became of the records, without what there was none of."""
        given = options.parse([kind, str(source), *self.flags, *flags])
        return self.counts(pipeline.run(given))

    def start(self, *flags: str, **settings) -> subprocess.Popen:
        """As a command of its own."""
        command = [sys.executable, "-m", "pipelines.encode", *flags, *self.flags]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe, encoding="utf-8", **settings)

    def dead(self) -> list[dict]:
        files = sorted(self.letters.glob("*.jsonl"))
        return [json.loads(line) for path in files for line in path.read_bytes().splitlines()]

    @property
    def index(self):
        return open_index(self.index_url)

    @staticmethod
    def counts(summary) -> dict[str, int]:
        return {name: number for name, number in sorted(summary.counts.items()) if number}
