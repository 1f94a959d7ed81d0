"""What the launcher of a Dataflow template runs, by its path: as a module of `pipelines`, that folder would come first
on Python's path, and its `io` before Python's own."""

from __future__ import annotations

import sys

from pipelines.encode import main

if __name__ == "__main__":
    sys.exit(main())
