"""The embedded server: `python -m serving.server --port 8500 --rest_api_port 8501 --model_base_path BASE`."""

from __future__ import annotations

import asyncio
import logging
import sys

from model.command import answer
from serving.server.options import Options, parse
from serving.server.ports import listen
from serving.server.threads import one_core_a_run


def main(argv: list[str] | None = None) -> int:
    return answer(lambda: _serve(parse(argv)))


def _serve(options: Options) -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname).1s %(message)s", stream=sys.stderr)
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
