"""Runs one command and prints its exit code, seconds and peak memory.

`python -m benchmarks.targets.starter COMMAND ...`

Linux counts what a process held before it became another program as that program's own, so that a command started by
whoever measures would seem at least as large as they are. This one is small: the standard library is all it imports.
"""

from __future__ import annotations

import json
import os
import sys
import time

PEAK_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes


def main(command: list[str]) -> int:
    start = time.perf_counter()
    pid = os.posix_spawnp(command[0], command, os.environ)
    _, status, used = os.wait4(pid, 0)
    wall = time.perf_counter() - start
    peak = used.ru_maxrss * PEAK_UNIT / 1e6
    print(json.dumps({"code": os.waitstatus_to_exitcode(status), "wall": wall, "peak": peak}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
