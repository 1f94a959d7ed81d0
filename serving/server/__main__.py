"""The embedded server: `python -m serving.server --port 8500 --rest_api_port 8501 --model_base_path BASE`."""

from __future__ import annotations

import asyncio
import logging
import sys

from common.command import exit_code
from common.ports import listen
from serving.server.compute.threads import one_core_a_run
from serving.server.config.options import Options, parse
from serving.tracing.start import start


def main(argv: list[str] | None = None) -> int:
    return exit_code(lambda: _serve(parse(argv)))


def _serve(options: Options) -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname).1s %(message)s", stream=sys.stderr)
    start("pause-serving")
    _check_ports(options)
    one_core_a_run()  # TensorFlow is imported only once the flags are known to be good
    from serving.server.serve import serve

    asyncio.run(serve(options))


def _check_ports(options: Options) -> None:
    """A port that is in use is the commonest mistake of all: told before anything is loaded, and in one line, which
    gRPC would add its own to."""
    for flag, port in (("--port", options.port), ("--rest_api_port", options.rest_port)):
        if port is not None:
            listen(flag, options.host, port).close()


if __name__ == "__main__":
    sys.exit(main())
