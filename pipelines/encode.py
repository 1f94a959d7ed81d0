"""Company descriptions in, searchable vectors out: `python -m pipelines.encode`.

Beam takes seconds to import: it is, once the flags have been read.
"""

from __future__ import annotations

import logging
import signal
import sys
import time

from model.command import answer
from pipelines import options as flags
from pipelines.errors import JobFailed


def main(argv: list[str] | None = None) -> int:
    logging.getLogger().setLevel(logging.WARNING)  # Beam tells every step it takes,
    logging.getLogger("apache_beam.runners").setLevel(logging.CRITICAL)  # and a failure several times over

    def work() -> None:
        options = flags.parse(argv)
        from pipelines import job

        began = time.monotonic()
        summary = job.run(options)
        if summary is None:
            print("the job is running", file=sys.stderr)
        else:
            print(f"{summary}; {time.monotonic() - began:.1f} s; index {options.index}")
            if summary.counts.get("bad") or summary.counts.get("dead"):
                print(f"dead letters are in {options.dead_letters}")

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # both ways of ending a run are one
    try:
        return answer(work)
    except JobFailed as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
