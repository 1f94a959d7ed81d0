"""Company descriptions in, searchable vectors out: `python -m pipelines.encode`.

Beam takes seconds to import: it is, once the flags have been read.
"""

from __future__ import annotations

import logging
import signal
import sys
import time

from common.command import exit_code
from pipelines import options as flags
from pipelines.errors import JobFailed
from pipelines.metrics.max_bad import ALL_BUT_ONE, MaxBad
from pipelines.records import SAME_NAMES
from serving.tracing.start import start


def main(argv: list[str] | None = None) -> int:
    logging.getLogger().setLevel(logging.WARNING)  # Beam tells every step it takes,
    logging.getLogger("apache_beam.runners").setLevel(logging.CRITICAL)  # and a failure several times over

    def work() -> None:
        options = flags.parse(argv)
        start("pause-pipeline")
        from pipelines import pipeline, preflight

        began = time.monotonic()
        summary = pipeline.run(options)
        if summary is None:
            described = preflight.template_location(options)
            print(f"the job is described in {described}" if described else "the job is running", file=sys.stderr)
        else:
            print(f"{summary}; {time.monotonic() - began:.1f} s; index {options.index}")
            for line in summary.details(SAME_NAMES if options.replay else options.columns):
                print(line)
            if summary.bad:
                print(f"dead letters are in {options.dead_letters}")
            if not options.max_bad.allows(summary.bad, summary.read):
                raise JobFailed(too_many(summary.bad, summary.read, options.max_bad))

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # both ways of ending a run are one
    try:
        return exit_code(work)
    except JobFailed as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here", file=sys.stderr)
        return 130


def too_many(bad: int, read: int, allowed: MaxBad) -> str:
    if bad == read and allowed == ALL_BUT_ONE:
        return f"none of {read:,} records was good; --max_bad 100% would let such a run end well"
    return f"{bad:,} of {read:,} records were bad, and --max_bad allows {allowed}"


if __name__ == "__main__":
    sys.exit(main())
