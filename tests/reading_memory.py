"""What reading files takes: each in a process of its own, whose peak of memory is told with what was found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from apache_beam.pvalue import TaggedOutput

from pipelines.io.dead_letters import replay_or_fault
from pipelines.io.files import parts, read
from pipelines.records import SAME_NAMES
from pipelines.transforms.parse import Parse

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Reading:
    ids: list[str]  # of the companies
    letters: list[dict]  # dead ones: record, of which the beginning, reason and source
    peak: int  # bytes


def readings(*files: Path, replay: bool = False) -> list[Reading]:
    """Of the files, in their order."""
    command = [sys.executable, __file__, "--replay" if replay else "--read", *map(str, files)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, timeout=300)
    return [Reading(**json.loads(line)) for line in done.stdout.splitlines()]


def main(kind: str, *files: str) -> None:
    for file in files:
        pid = os.fork()  # before anything was read, so that the imports are done once and no peak is another's
        if pid == 0:
            try:
                sys.stdout.write(json.dumps(_reading(file, kind == "--replay")) + "\n")
                sys.stdout.flush()
            finally:
                os._exit(0)
        os.waitpid(pid, 0)


def _reading(file: str, replay: bool) -> dict:
    ids, letters, step = [], [], Parse(SAME_NAMES)
    for start, stop in parts(file, Path(file).stat().st_size):
        for raw in read(file, start, stop, SAME_NAMES):
            for out in step.process(replay_or_fault(raw) if replay else raw if raw.fault else replace(raw, time=1)):
                if isinstance(out, TaggedOutput):
                    beginning = str(out.value.record)[:2000]  # all of many would be the peak themselves
                    letters.append({"record": beginning, "reason": out.value.reason, "source": out.value.source})
                else:
                    ids.append(out.document.id)
    return {"ids": ids, "letters": letters, "peak": _peak()}


def _peak() -> int:
    """Not getrusage's ru_maxrss, which a process inherits from whoever started it, were that larger."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    raise OSError("no peak of memory in /proc/self/status")


if __name__ == "__main__":
    main(*sys.argv[1:])
